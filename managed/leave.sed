# Deletes this edition from the list of a dump, so that the rest can be restored where the extension is, as
# docs/how-to/managed.md shows. LC_ALL=C is needed because the list is in the encoding of the database.
#
# A line has numbers, the kind of the object, its schema, its name and its owner. Tables of others in the schema "flake" stay in the
# list, so that pg_restore raises an error.
/^[0-9; ]+((ACL|COMMENT) - )?SCHEMA (- )?flake /d
/^[0-9; ]+(FUNCTION|TYPE|SEQUENCE|SEQUENCE SET|ACL|COMMENT) flake /d
/^[0-9; ]+(TABLE|TABLE DATA|CONSTRAINT|STATISTICS DATA) flake (gate|key|key_pkey) /d
/^[0-9; ]+((ACL|COMMENT) [^(]+ FUNCTION|FUNCTION [^(]+) flake_(batch|check|decode|during|explain|first|last|make|max|min|next|since|timestamp)\(/d
/^[0-9; ]+((ACL|COMMENT) [^(]+ FUNCTION|FUNCTION [^(]+) flake_(from_text|plan_first|plan_last|plan_since|set_node|start_above|to_text)\(/d
/^[0-9; ]+((ACL|COMMENT) [^(]+ FUNCTION|FUNCTION [^(]+) flake_(create_key|drop_key|import_key|seal|seal_uuid|unseal)\(/d
/^[0-9; ]+((ACL|COMMENT) .+ TYPE|TYPE .+) flake_parts /d
/^[0-9; ]+((ACL|COMMENT) .+ (TABLE|VIEW)|VIEW .+) flake_layouts /d
# What pg_tle calls it.
/^[0-9; ]+(COMMENT - )?EXTENSION (- )?flake_sql /d
