#!/usr/bin/env bash
# Some of the stories of internal/stories, on servers of their own, most at full
# length. Their short forms are part of `make test`.
#
#   stories.sh attack  what hostile people and neighbours tried, in short;
#                      INTUMWA_CHAOS=1 for the long forms
#   stories.sh chaos   everything that is killed, flushed or dropped, many times over
#   stories.sh fleet   servers that fail over: PostgreSQL to its standby, Redis by Sentinel
#                      and in a Cluster, many times over; four gateways on hosts of their
#                      own, with cut networks, wrong clocks and an upgrade from PREVIOUS;
#                      make fleet then measures one, two and three processes
#   stories.sh soak    the long run, for SOAK (10m)
#
# TESTFLAGS goes to go test as it is, e.g. TESTFLAGS='-run Redis'.
set -euo pipefail
cd "$(dirname "$0")/.."

rooms=''
case ${1:-} in
attack)
	# The shipped binary: its memory and its times are the product's. The figures are the lines
	# with FIGURE; TESTFLAGS='-parallel 1' has each story play alone. `make test` has the race detector.
	export INTUMWA_STORIES_BINARY=$PWD/bin/intumwa
	# Those on what operators type and read are played in their rooms.
	stories='Attack|^Test(Canaries|RolesSecrets|WebhookSecret|WhatTerminalsObey|ForeignTablesAreRefused|MissingTable|NeighbourInRedis|TestUsersDoNotStallOthers|DeadlockedGroupIsSplit)$'
	rooms='./cmd/intumwa ./configs ./internal/postgres ./internal/throttle ./intake'
	;;
chaos)
	export INTUMWA_CHAOS=1
	stories='MidLoad|KilledWithHold|EverythingBreaks|DownAtTheDueMoment|ManyScheduled'
	;;
fleet)
	export INTUMWA_CHAOS=1
	if [ -n "${PREVIOUS:-}" ]; then # else the story replaces each process with the same build
		INTUMWA_STORIES_PREVIOUS=$(scripts/previous.sh "$PREVIOUS")
		export INTUMWA_STORIES_PREVIOUS
	fi
	stories='FailsOver|OldPrimary|Standby|Fleet|RollingUpgrade'
	;;
soak)
	export INTUMWA_SOAK=${SOAK:-10m}
	# The shipped binary: the race detector's own memory would hide what grows.
	export INTUMWA_STORIES_BINARY=$PWD/bin/intumwa
	stories='Soak'
	;;
*)
	sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2
	exit 2
	;;
esac
assignments=$(scripts/deps.sh test) # installs what is missing; the tests find it again
: "$assignments"
# shellcheck disable=SC2086 # TESTFLAGS and rooms are lists of words
exec go test -race -count=1 -timeout 0 -v -run "$stories" ${TESTFLAGS:-} ./internal/stories $rooms
