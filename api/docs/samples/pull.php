<?php
const FILE = 'events.cursor';

// fetch waits for the events after a cursor. null: try again later.
function fetch(string $cursor): ?array
{
    $query = ['limit' => 100, 'wait' => 30] + ($cursor === '' ? [] : ['after' => $cursor]);
    $context = stream_context_create(['http' => [
        'header' => ['Authorization: Bearer ' . getenv('TOKEN'), 'Connection: close'],
        'timeout' => 45, // seconds without an octet
        'ignore_errors' => true, // refusals have a body too
    ]]);
    $http_response_header = []; // PHP sets it
    $body = @file_get_contents(getenv('BASE_URL') . '/events?' . http_build_query($query), false, $context);
    $headers = function_exists('http_get_last_response_headers') ? http_get_last_response_headers() ?? [] : $http_response_header;
    $status = 0; // no answer: refused, broken off or too late
    if ($body !== false && preg_match('/^HTTP\S* (\d+)/', $headers[0] ?? '', $match)) {
        $status = (int) $match[1];
    }
    if ($status === 410) { // the consumer was off for too long
        fwrite(STDERR, "events were lost: $body\n");
    }
    if (in_array($status, [401, 403, 422], true)) {
        throw new RuntimeException("$status: $body");
    }

    return $status === 200 || $status === 410 ? json_decode($body, true, 512, JSON_THROW_ON_ERROR) : null;
}

// The file has the cursor behind the events that are processed. Without it the oldest
// event is the first. Run one consumer for a file.
$cursor = is_file(FILE) ? file_get_contents(FILE) : '';
while (true) {
    $page = fetch($cursor);
    if ($page === null) {
        sleep(5);
        continue;
    }
    foreach ($page['data'] ?? [] as $event) {
        // An event may come twice: process it once by its id.
        echo $event['id'], ' ', $event['event'], ' ', $event['timestamp'], "\n";
    }
    $cursor = $page['next_cursor'];
    file_put_contents(FILE . '.new', $cursor);
    rename(FILE . '.new', FILE);
}
