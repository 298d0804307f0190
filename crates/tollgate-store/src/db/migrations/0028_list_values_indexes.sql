-- Which blocks have a rare value is then known without reading all rows of list_values. SQLite reads them all as fast.
{only postgres} CREATE INDEX list_values_by_user ON list_values (list, user_id);
{only postgres} CREATE INDEX list_values_by_key ON list_values (list, key_id);
{only postgres} CREATE INDEX list_values_by_model ON list_values (list, model, channel);
{only postgres} CREATE INDEX list_values_by_channel ON list_values (list, channel);
{only postgres} CREATE INDEX list_values_by_outcome ON list_values (list, outcome);
{only postgres} CREATE INDEX list_values_by_error_code ON list_values (list, error_code);
{only postgres} CREATE INDEX list_values_by_kinds ON list_values (list, kinds);
