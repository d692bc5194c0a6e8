CREATE FUNCTION flake_probe(layout text) RETURNS bigint VOLATILE STRICT PARALLEL SAFE LANGUAGE c AS 'MODULE_PATHNAME', 'flake_probe_wrapper';
