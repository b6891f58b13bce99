<?php
// The answer's status and body. See above for when to try again.
function call(string $path, array $body, array $headers = []): array
{
    $context = stream_context_create(['http' => [
        'method' => 'POST',
        'header' => ['Authorization: Bearer ' . getenv('TOKEN'), 'Content-Type: application/json', 'Connection: close', ...$headers],
        'content' => json_encode($body, JSON_THROW_ON_ERROR),
        'timeout' => 15, // seconds without an octet
        'ignore_errors' => true, // refusals have a body too
    ]]);
    $http_response_header = []; // PHP sets it
    $text = file_get_contents(getenv('BASE_URL') . '/verifications' . $path, false, $context);
    $headers = function_exists('http_get_last_response_headers') ? http_get_last_response_headers() ?? [] : $http_response_header;
    preg_match('/^HTTP\S* (\d+)/', $headers[0] ?? '', $match);
    return [(int) ($match[1] ?? 0), json_decode((string) $text, true) ?? []];
}

// start sends a code and returns the verification's id: keep it in the person's session.
// If you make the key with the form that you show, a double click sends one code.
function start(string $number): string
{
    $key = 'Idempotency-Key: ' . bin2hex(random_bytes(16));
    [$status, $answer] = call('', ['phone_number' => $number, 'sender' => 'INTUMWATEST'], [$key]);
    return $status === 200 ? $answer['id'] : throw new RuntimeException("$status: " . ($answer['message'] ?? ''));
}

// check says whether the person has entered the right code.
function check(string $id, string $code): string
{
    [$status, $answer] = call("/$id/check", ['code' => $code]);
    return $status === 200 ? $answer['status'] : ($answer['message'] ?? 'no answer');
}

echo $argv[1] === 'start' ? start($argv[2]) : check($argv[2], $argv[3]), "\n";
