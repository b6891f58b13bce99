import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

FILE = "events.cursor"


# fetch waits for the events after a cursor. None: try again later.
def fetch(cursor: str):
    query = {"limit": 100, "wait": 30}
    if cursor:
        query["after"] = cursor
    request = urllib.request.Request(
        os.environ["BASE_URL"] + "/events?" + urllib.parse.urlencode(query),
        headers={"Authorization": "Bearer " + os.environ["TOKEN"]},
    )
    try:
        with urllib.request.urlopen(request, timeout=45) as response:
            return json.load(response)
    except urllib.error.HTTPError as refusal:
        text = refusal.read().decode(errors="replace")
        if refusal.code == 410:  # the consumer was off for too long
            print("events were lost: " + text, file=sys.stderr)
            return json.loads(text)
        if refusal.code in (401, 403, 422):
            raise RuntimeError(f"{refusal.code}: {text}") from None
    except (OSError, http.client.HTTPException, ValueError):
        pass  # refused, broken off or too late
    return None


# The file has the cursor behind the events that are processed. Without it the oldest
# event is the first. Run one consumer for a file.
cursor = open(FILE).read() if os.path.exists(FILE) else ""
while True:
    page = fetch(cursor)
    if page is None:
        time.sleep(5)
        continue
    for event in page.get("data", []):
        # An event may come twice: process it once by its id.
        print(event["id"], event["event"], event["timestamp"], flush=True)
    cursor = page["next_cursor"]
    with open(FILE + ".new", "w") as file:
        file.write(cursor)
    os.replace(FILE + ".new", FILE)
