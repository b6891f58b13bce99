# The file has the cursor behind the events that are processed. Without it the oldest
# event is the first. Run one consumer for a file.
cursor=$(cat events.cursor 2>/dev/null)
while :; do
  answer=$(curl -sSG --connect-timeout 5 --max-time 45 -w '\n%{http_code}' "$BASE_URL/events" \
    -H "Authorization: Bearer $TOKEN" \
    -d limit=100 -d wait=30 ${cursor:+-d "after=$cursor"})
  status=${answer##*$'\n'} page=${answer%$'\n'*}
  case $status in
    200) ;;
    410) echo "events were lost: $page" >&2 ;; # the consumer was off for too long
    401 | 403 | 422) echo "$page" >&2; exit 1 ;;
    *) sleep 5; continue ;;
  esac
  # An event may come twice: process it once by its id.
  jq -r '.data[]? | [.id, .event, .timestamp] | @tsv' <<<"$page"
  cursor=$(jq -r .next_cursor <<<"$page")
  echo "$cursor" >events.cursor.new && mv events.cursor.new events.cursor
done
