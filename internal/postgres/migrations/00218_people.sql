-- What an API key may do: send (every request that is no GET), read (every GET), until when, and from where.
ALTER TABLE api_tokens
    ADD COLUMN scopes     text[] NOT NULL DEFAULT '{send,read}' CHECK (scopes <@ '{send,read}' AND cardinality(scopes) > 0),
    ADD COLUMN expires_at timestamptz,                                                        -- NULL: never
    ADD COLUMN networks   cidr[] NOT NULL DEFAULT '{}' CHECK (cardinality(networks) <= 10); -- empty: any address
