<?php
// $body is file_get_contents('php://input'): the bytes as they came.
// $headers has lower-case names; $secret is the whole whsec_… string.
function verify(string $secret, array $headers, string $body, int $now): bool
{
    $contract = hash_hmac('sha256', $body, $secret);
    if (!hash_equals($contract, $headers['x-webhook-signature'] ?? '')) {
        return false;
    }

    // Standard Webhooks, which also refuses a request that is sent again later.
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $key = base64_decode(substr($secret, strlen('whsec_')));
    $standard = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));

    return hash_equals($standard, $headers['webhook-signature'] ?? '')
        && abs($now - (int) $timestamp) <= 300;
}
