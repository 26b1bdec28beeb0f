/* The backstop program. */
#include "app/cli.h"

#include <locale.h>
#include <signal.h>
#include <sys/stat.h>

int main(int argc, char **argv)
{
    /* Whatever is made (store, socket, lock) belongs to this user alone. */
    umask(077);
    signal(SIGPIPE, SIG_IGN);
    setlocale(LC_CTYPE, "C.UTF-8");
    return (int)bs_cli_run(argc, argv);
}
