/* Makes the system refuse memory to a session, as it does where a limit is reached (ulimit -v, vm.overcommit_memory = 2).
 *
 * refusing(value, left) returns the value, after which the session gets no more than `left` bytes until its transaction ends: neither new
 * memory nor what it has freed before. */
#include "postgres.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "access/xact.h"
#include "fmgr.h"

PG_MODULE_MAGIC;

/* The largest pieces that are taken, and the smallest that malloc returns. */
#define LARGEST ((size_t) 1 << 26)
#define SMALLEST 24

static struct rlimit before;
static void *taken = NULL;
static clock_t begun;
static double worked = 0;

static void
allow(XactEvent event, void *arg)
{
	if (taken == NULL || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT))
		return;
	worked = (double) (clock() - begun) / CLOCKS_PER_SEC;
	while (taken != NULL)
	{
		void	   *next = *(void **) taken;

		free(taken);
		taken = next;
	}
	setrlimit(RLIMIT_AS, &before);
}

static void
refuse(int64 left)
{
	static bool is_registered = false;
	char		text[64] = {0};
	struct rlimit now;
	int			file = open("/proc/self/statm", O_RDONLY);
	void	   *room;

	if (taken != NULL)
		return;
	if (file < 0 || read(file, text, sizeof(text) - 1) <= 0 || close(file) != 0)
		elog(ERROR, "could not read the size of the process");
	if (!is_registered)
		RegisterXactCallback(allow, NULL);
	is_registered = true;
	getrlimit(RLIMIT_AS, &before);
	room = left > 0 ? malloc(left) : NULL;
	now = before;
	now.rlim_cur = (strtoull(text, NULL, 10) + (left >> 12) + 1) * getpagesize();
	if (setrlimit(RLIMIT_AS, &now) != 0)
		elog(ERROR, "could not limit the memory");
	for (size_t size = LARGEST; size >= SMALLEST; size /= 2)
	{
		void	  **piece;

		while ((piece = malloc(size)) != NULL)
		{
			*piece = taken;
			taken = piece;
		}
	}
	free(room);
	begun = clock();
}

PG_FUNCTION_INFO_V1(refusing);
Datum
refusing(PG_FUNCTION_ARGS)
{
	refuse(PG_GETARG_INT64(1));
	PG_RETURN_DATUM(PG_GETARG_DATUM(0));
}

/* The processor's time between the last refusal and the end of its transaction. */
PG_FUNCTION_INFO_V1(refused_seconds);
Datum
refused_seconds(PG_FUNCTION_ARGS)
{
	PG_RETURN_FLOAT8(worked);
}
