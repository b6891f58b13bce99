import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';

const file = 'events.cursor';

// pull waits for the events after a cursor. undefined: try again later.
async function pull(cursor) {
  const query = new URLSearchParams({ limit: 100, wait: 30 });
  if (cursor) {
    query.set('after', cursor);
  }
  let status = 0;
  try {
    const response = await fetch(`${process.env.BASE_URL}/events?${query}`, {
      headers: { 'Authorization': `Bearer ${process.env.TOKEN}` },
      signal: AbortSignal.timeout(45_000),
    });
    const page = await response.json();
    status = response.status;
    if (status === 410) { // the consumer was off for too long
      console.error('events were lost:', page.message);
    }
    if (status === 200 || status === 410) {
      return page;
    }
  } catch {
    status = 0; // refused, broken off or too late
  }
  if ([401, 403, 422].includes(status)) {
    throw new Error(`refused: ${status}`);
  }
  return undefined;
}

// The file has the cursor behind the events that are processed. Without it the oldest
// event is the first. Run one consumer for a file.
let cursor = existsSync(file) ? readFileSync(file, 'utf8') : '';
for (;;) {
  const page = await pull(cursor);
  if (!page) {
    await new Promise((resolve) => setTimeout(resolve, 5000));
    continue;
  }
  for (const event of page.data ?? []) {
    // An event may come twice: process it once by its id.
    console.log(event.id, event.event, event.timestamp);
  }
  cursor = page.next_cursor;
  writeFileSync(`${file}.new`, cursor);
  renameSync(`${file}.new`, file);
}
