# Deletes this edition from the list of a dump, so that the rest can be restored where the extension is, as
# docs/how-to/managed.md shows. LC_ALL=C is needed because the list is in the encoding of the database. Where the edition's
# functions are in another schema, its name has to be here in place of "public".
#
# A line has numbers, the kind of the object, its schema, its name and its owner. What others have in the schema "flake" stays in
# the list, so that pg_restore raises an error, except for functions and sequences. An owner's name is one word.
/^[0-9; ]+((ACL|COMMENT) - )?SCHEMA (- )?flake [^ ]+$/d
# Both schemas exist. The brackets keep one name when "public" is replaced.
/^[0-9; ]+SCHEMA - (public|[p]ublic) [^ ]+$/d
/^[0-9; ]+(ACL|COMMENT) flake (COLUMN|CONSTRAINT|FUNCTION|INDEX|SEQUENCE|TABLE|TYPE) /d
/^[0-9; ]+FUNCTION flake [a-z0-9_]+\(/d
/^[0-9; ]+SEQUENCE( SET)? flake [a-z0-9_]+ [^ ]+$/d
/^[0-9; ]+TYPE flake (division|layout) [^ ]+$/d
/^[0-9; ]+(TABLE|TABLE DATA|CONSTRAINT|STATISTICS DATA) flake (gate|key|key_pkey|key key_pkey) [^ ]+$/d
/^[0-9; ]+((ACL|COMMENT) public TYPE|TYPE public) flake_parts [^ ]+$/d
/^[0-9; ]+((ACL|COMMENT) public (TABLE|VIEW)|VIEW public) flake_layouts [^ ]+$/d
/^[0-9; ]+(ACL|COMMENT) public COLUMN flake_(layouts|parts)\./d
# What pg_tle calls it.
/^[0-9; ]+(COMMENT - )?EXTENSION (- )?flake_sql /d
# Functions of users can have the same names, in other schemas or with other arguments. Privileges and comments name the arguments.
h
s/^([0-9; ]+)(ACL|COMMENT) public FUNCTION /\1FUNCTION public /
s/OUT [a-z]+ [a-z]+(, )?//g
s/(\(|, )[a-z_]+ (bigint|boolean|bytea|integer|jsonb|text|timestamp|tstzrange|uuid)/\1\2/g
/^[0-9; ]+FUNCTION public flake_(check\(\)|(drop_key|next)\(text\)|(create_key|from_text|unseal)\(text, text\)) /d
/^[0-9; ]+FUNCTION public flake_(batch\(text, integer\)|set_node\(integer, integer\)|unseal\(uuid, text\)) /d
/^[0-9; ]+FUNCTION public flake_(decode|explain|seal|seal_uuid|timestamp|to_text)\(bigint, text\) /d
/^[0-9; ]+FUNCTION public flake_(import_key\(text, text, bytea, boolean\)|start_above\(bigint, text, boolean\)) /d
/^[0-9; ]+FUNCTION public flake_during\(bigint, tstzrange, text\) /d
/^[0-9; ]+FUNCTION public flake_((max|min)\(timestamp with time zone, text\)|make\(timestamp with time zone, jsonb, text\)) /d
g
