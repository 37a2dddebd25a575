/* SPDX-License-Identifier: MIT-0

   c_file_name.h: which names a function of a generated C file may have (onnx_c.h). A
   name is refused if the file, its header, or a program that includes the header could not be
   compiled with it, as C or as C++, or if it would take the place of a function of the C library.
   What the files themselves define ends with an underscore, except names of the form NAME_word; so
   a name that ends with one is refused, and no other can clash.

   Copy c_file_name.h, decimal.h and deploy.h beside lgelu.h. */
#ifndef C_FILE_NAME_H
#define C_FILE_NAME_H
#include "deploy.h"

enum { C_FILE_NAME_MOST = 40 };

/* What is said of a name that is refused, and of a file (c_file_name_of). */
#define C_FILE_NAME_REFUSED                                                                        \
    "C file: '%s' is not a valid name for a function: expected an identifier that C, C++ and the " \
    "C library do not use"
#define C_FILE_NAME_EXPECTED                                                                      \
    "expected NAME.c, where NAME is a C identifier of at most 40 characters that is no reserved " \
    "word of C or C++ and no name of the C library"

/* Reserved words of C up to C23 and of C++ up to C++20. */
static const char *const c_file_name_reserved[] = {
    /* clang-format off */
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char char16_t",
    "char32_t char8_t class co_await co_return co_yield compl concept const const_cast",
    "consteval constexpr constinit continue decltype default delete do double dynamic_cast",
    "else enum explicit export extern false float for fortran friend goto if import inline",
    "int long module mutable namespace new noexcept not not_eq nullptr operator or or_eq",
    "private protected public register reinterpret_cast requires restrict return short signed",
    "sizeof static static_assert static_cast struct switch template this thread_local throw",
    "true try typedef typeid typename typeof typeof_unqual union unsigned using virtual void",
    "volatile wchar_t while xor xor_eq"
    /* clang-format on */
};

/* Functions, types, variables and macros that libraries of C declare: ISO C, POSIX and what GNU and
   BSD add to their headers, without those that are some other name here and an ending of
   c_file_name_ending, or begin as c_file_name_family says; and macros that compilers define. */
static const char *const c_file_name_library[] = {
    /* clang-format off */
    "BIG_ENDIAN BUFSIZ BYTE_ORDER DECIMAL_DIG DIR DOMAIN EOF EXIT_FAILURE EXIT_SUCCESS FD",
    "FILE FILENAME_MAX FOPEN_MAX FP HUGE I INFINITY LITTLE_ENDIAN L_ctermid L_cuserid",
    "L_tmpnam MAXFLOAT MB_CUR_MAX NAN NFDBITS NULL OVERFLOW PDP_ENDIAN P_tmpdir RAND_MAX SNAN",
    "TMP_MAX UNDERFLOW a64l abort abs accept access acct acos acosh adjtime alarm",
    "aligned_alloc alloca alphasort arc4random arc4random_buf arc4random_uniform asctime asin",
    "asinh asprintf assert at_quick_exit atan atan2 atanh atexit atof atoi atol basename bcmp",
    "bcopy be16toh be32toh be64toh bind brk bsearch btowc bzero c16rtomb c32rtomb cabs cacos",
    "cacosh call_once calloc canonicalize canonicalize_file_name carg casin casinh catan",
    "catanh catclose catgets catopen cbrt ccos ccosh ceil cexp cfgetispeed cfgetospeed",
    "cfsetispeed cfsetospeed chdir chmod chown chroot cimag clearenv clearerr clock",
    "clock_adjtime clock_getcpuclockid clock_getres clock_gettime clock_nanosleep",
    "clock_settime clog clog10 clone close close_range closedir closefrom closelog complex",
    "confstr conj connect copy_file_range copysign cos cosh cpow cproj creal creat csin csinh",
    "csqrt ctan ctanh ctermid ctime cuserid daddl daemon daylight dcgettext ddivl dfmal",
    "dgettext difftime dirfd dirname div dlclose dlerror dlopen dlsym dmull dprintf drand48",
    "drem dsqrtl dsubl dup dup2 dup3 duplocale dysize eaccess ecvt endgrent endhostent",
    "endnetent endorder endprotoent endpwent endservent endusershell environ epoll_create",
    "epoll_ctl epoll_wait erand48 erf erfc err errno errx euidaccess eventfd execl execle",
    "execlp execv execve execveat execvp execvpe exit exp exp10 exp2 explicit_bzero expm1",
    "f32addf128 f32addf32x f32addf64 f32addf64x f32divf128 f32divf32x f32divf64 f32divf64x",
    "f32fmaf128 f32fmaf32x f32fmaf64 f32fmaf64x f32mulf128 f32mulf32x f32mulf64 f32mulf64x",
    "f32sqrtf128 f32sqrtf32x f32sqrtf64 f32sqrtf64x f32subf128 f32subf32x f32subf64",
    "f32subf64x f32xaddf128 f32xaddf64 f32xaddf64x f32xdivf128 f32xdivf64 f32xdivf64x",
    "f32xfmaf128 f32xfmaf64 f32xfmaf64x f32xmulf128 f32xmulf64 f32xmulf64x f32xsqrtf128",
    "f32xsqrtf64 f32xsqrtf64x f32xsubf128 f32xsubf64 f32xsubf64x f64addf128 f64addf64x",
    "f64divf128 f64divf64x f64fmaf128 f64fmaf64x f64mulf128 f64mulf64x f64sqrtf128",
    "f64sqrtf64x f64subf128 f64subf64x f64xaddf128 f64xdivf128 f64xfmaf128 f64xmulf128",
    "f64xsqrtf128 f64xsubf128 fabs faccessat fadd fallocate fchdir fchmod fchmodat fchown",
    "fchownat fclose fcloseall fcntl fcvt fd_mask fd_set fdatasync fdim fdiv fdopen fdopendir",
    "feclearexcept fedisableexcept feenableexcept fegetenv fegetexcept fegetexceptflag",
    "fegetmode fegetround feholdexcept feof feraiseexcept ferror fesetenv fesetexcept",
    "fesetexceptflag fesetmode fesetround fetestexcept fetestexceptflag feupdateenv fexecve",
    "fflush ffma ffs ffsll fgetc fgetpos fgets fgetwc fgetws fileno finite flock flockfile",
    "floor fma fmax fmaximum fmaximum_mag fmaximum_mag_num fmaximum_num fmaxmag fmemopen fmin",
    "fminimum fminimum_mag fminimum_mag_num fminimum_num fminmag fmod fmul fnmatch fopen",
    "fopencookie fork fpathconf fpclassify fprintf fputc fputs fputwc fputws fread free",
    "freeaddrinfo freelocale freopen frexp fromfp fromfpx fscanf fseek fseeko fsetpos fsqrt",
    "fstat fstatat fsub fsync ftell ftello ftruncate ftrylockfile ftw funlockfile futimens",
    "futimes futimesat fwide fwprintf fwrite fwscanf gai_strerror gamma gcvt",
    "get_current_dir_name getaddrinfo getc getchar getcontext getcwd getdate getdate_err",
    "getdelim getdents64 getdirentries getdomainname getdtablesize getegid getentropy getenv",
    "geteuid getgid getgrent getgrgid getgrnam getgroups gethostbyaddr gethostbyname",
    "gethostent gethostid gethostname getitimer getline getloadavg getlogin getnameinfo",
    "getnetbyaddr getnetbyname getnetent getopt getopt_long getopt_long_only getpagesize",
    "getpass getpayload getpeername getpgid getpgrp getpid getppid getpriority getprotobyname",
    "getprotobynumber getprotoent getpt getpwent getpwnam getpwuid getrandom getresgid",
    "getresuid getrlimit getrusage gets getservbyname getservbyport getservent getsid",
    "getsockname getsockopt getsubopt gettext gettid gettimeofday getuid getusershell getw",
    "getwc getwchar getwd glob globfree gmtime grantpt group_member gsignal hcreate hdestroy",
    "hsearch htobe16 htobe32 htobe64 htole16 htole32 htole64 htonl htons hypot i386 iconv",
    "iconv_close iconv_open ilogb imaxabs imaxdiv in6addr_any in6addr_loopback index",
    "inet_addr inet_lnaof inet_makeaddr inet_netof inet_network inet_ntoa inet_ntop inet_pton",
    "initstate inotify_init insque ioctl ioperm iopl isalnum isalpha isascii isatty isblank",
    "iscanonical iscntrl isctype isdigit iseqsig isfinite isgraph isgreater isgreaterequal",
    "isinf isless islessequal islessgreater islower isnan isnormal isprint ispunct",
    "issignaling isspace issubnormal isunordered isupper iswalnum iswalpha iswblank iswcntrl",
    "iswctype iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit",
    "isxdigit iszero j0 j1 jmp_buf jn jrand48 kill kill_dependency killpg l64a labs lchmod",
    "lchown lcong48 ldexp ldiv le16toh le32toh le64toh leaf lfind lgamma link linkat linux",
    "lio_listio listen llabs lldiv llogb llrint llround localeconv localtime lockf log log10",
    "log1p log2 logb longjmp lrand48 lrint lround lsearch lseek lstat lutimes madvise main",
    "makecontext malloc math_errhandling mblen mbrlen mbrtoc16 mbrtoc32 mbrtowc mbsinit",
    "mbsnrtowcs mbsrtowcs mbstowcs mbtowc memalign memccpy memchr memcmp memcpy memfd_create",
    "memfrob memmem memmove mempcpy memrchr memset mincore mkdir mkdirat mkdtemp mkfifo",
    "mkfifoat mknod mknodat mkostemp mkostemps mkstemp mkstemps mktemp mktime mlock mlock2",
    "mlockall mmap modf mount mprotect mrand48 mremap msync munlock munlockall munmap",
    "name_to_handle_at nan nanosleep nearbyint newlocale nextafter nextdown nexttoward nextup",
    "nftw nice nl_catd nl_item nl_langinfo noreturn nrand48 ntohl ntohs obstack_printf",
    "obstack_vprintf offsetof on_exit once_flag open open_by_handle_at open_memstream",
    "open_wmemstream openat opendir openlog optarg opterr optind optopt pathconf pause pclose",
    "perror pipe pipe2 pkey_alloc pkey_free pkey_get pkey_mprotect pkey_set poll popen",
    "postorder pow pow10 ppoll prctl pread preorder printf process_madvise process_mrelease",
    "profil program_invocation_name program_invocation_short_name pselect psiginfo psignal",
    "ptrace ptsname putc putchar putenv puts putw putwc putwchar pwrite qecvt qfcvt qgcvt",
    "qsort quick_exit raise rand random rawmemchr re_syntax_options read readahead readdir",
    "readlink readlinkat readv realloc reallocarray realpath reboot recv recvfrom recvmsg",
    "regcomp regerror regexec regfree remainder remap_file_pages remove remque remquo rename",
    "renameat renameat2 revoke rewind rewinddir rindex rint rmdir round roundeven rpmatch",
    "sbrk scalb scalbln scalbn scandir scandirat scanf secure_getenv seed48 seekdir select",
    "send sendfile sendmsg sendto setbuf setbuffer setcontext setdomainname setegid setenv",
    "seteuid setgid setgrent sethostent sethostid sethostname setitimer setjmp setlinebuf",
    "setlocale setlogin setlogmask setnetent setns setpayload setpayloadsig setpgid setpgrp",
    "setpriority setprotoent setpwent setregid setresgid setresuid setreuid setrlimit",
    "setservent setsid setsockopt setstate settimeofday setuid setusershell setvbuf shm_open",
    "shm_unlink shutdown sigabbrev_np sigaction sigaddset sigaltstack sigandset sigblock",
    "sigdelset sigdescr_np sigemptyset sigfillset siggetmask sighold sigignore siginterrupt",
    "sigisemptyset sigismember siglongjmp signal signbit signgam significand sigorset",
    "sigpause sigpending sigprocmask sigqueue sigrelse sigreturn sigset sigsetjmp sigsetmask",
    "sigstack sigsuspend sigtimedwait sigwait sigwaitinfo sin sincos sinh sleep snprintf",
    "sockatmark socket socketpair splice sprintf sqrt srand srand48 srandom sscanf ssignal",
    "stat statx std stderr stdin stdout stpcpy stpncpy strcasecmp strcasestr strcat strchr",
    "strchrnul strcmp strcoll strcpy strcspn strdup strdupa strerror strerrordesc_np",
    "strerrorname_np strfmon strfromd strfromf strfromf128 strfromf32 strfromf32x strfromf64x",
    "strfroml strfry strftime strlen strncasecmp strncat strncmp strncpy strndup strndupa",
    "strnlen strpbrk strptime strrchr strsep strsignal strspn strstr strtod strtof strtof128",
    "strtof32 strtof32x strtof64x strtoimax strtok strtol strtold strtoq strtoul strtoumax",
    "strtouq strverscmp strxfrm swab swapcontext swapoff swapon swprintf swscanf symlink",
    "symlinkat sync sync_file_range syncfs syscall sysconf sysinfo syslog system sysv_signal",
    "tan tanh tcdrain tcflow tcflush tcgetattr tcgetpgrp tcgetsid tcsendbreak tcsetattr",
    "tcsetpgrp tdelete tee telldir tempnam tfind tgamma tgkill time timegm timelocal",
    "timer_create timer_delete timer_getoverrun timer_gettime timer_settime timespec_get",
    "timespec_getres timezone tmpfile tmpnam toascii tolower totalorder totalordermag toupper",
    "towctrans towlower towupper trunc truncate tsearch ttyname ttyslot twalk tzname tzset",
    "u_char u_int u_long u_short ualarm ufromfp ufromfpx uint ulong umask umount umount2",
    "uname ungetc ungetwc unix unlink unlinkat unlockpt unsetenv unshare uselocale ushort",
    "usleep utime utimensat utimes va_arg va_copy va_end va_list va_start valloc vasprintf",
    "vdprintf verr versionsort vfork vfprintf vfscanf vfwprintf vfwscanf vhangup vmsplice",
    "vprintf vscanf vsnprintf vsprintf vsscanf vswprintf vswscanf vwarn vwprintf vwscanf wait",
    "wait3 wait4 waitid waitpid warn warnx wcpcpy wcpncpy wcrtomb wcscasecmp wcscat wcschr",
    "wcschrnul wcscmp wcscoll wcscpy wcscspn wcsdup wcsftime wcslen wcsncasecmp wcsncat",
    "wcsncmp wcsncpy wcsnlen wcsnrtombs wcspbrk wcsrchr wcsrtombs wcsspn wcsstr wcstod wcstof",
    "wcstof128 wcstof32 wcstof32x wcstof64x wcstoimax wcstok wcstol wcstold wcstombs wcstoq",
    "wcstoul wcstoumax wcstouq wcswcs wcswidth wcsxfrm wctob wctomb wctrans wctype wcwidth",
    "wmemchr wmemcmp wmemcpy wmemmove wmempcpy wmemset wordexp wordfree wprintf write writev",
    "wscanf y0 y1 yn"
    /* clang-format on */
};

static const char *const c_file_name_ending[] = { "f",    "l",         "f16",  "f32",   "f64",
                                                  "f128", "f32x",      "f64x", "f128x", "_r",
                                                  "_l",   "_unlocked", "64" };

static const char *const c_file_name_family[] = {
    "_",     "atomic_",  "memory_order", "pthread_", "posix_", "mtx_",    "cnd_",     "thrd_",
    "tss_",  "sem_",     "sched_",       "mq_",      "aio_",   "PRI",     "SCN",      "INT",
    "UINT",  "FLT_",     "DBL_",         "LDBL_",    "FP_",    "M_",      "HUGE_VAL", "SEEK_",
    "SIZE_", "PTRDIFF_", "WCHAR_",       "WINT_",    "SIG_",   "RENAME_", "MATH_ERR"
};

/* Returns whether one of the words, which are separated by spaces, is the first n characters of
   name. */
DEPLOY_FN int c_file_name_has(const char *words, const char *name, size_t n)
{
    const char *at = words;
    while (*at) {
        const size_t word = strcspn(at, " ");
        if (word == n && !memcmp(at, name, n))
            return 1;
        at += word + (at[word] == ' ');
    }
    return 0;
}

/* Returns whether the library has a name of these n characters. */
DEPLOY_FN int c_file_name_of_library(const char *name, size_t n)
{
    size_t i;
    for (i = 0; i < sizeof c_file_name_library / sizeof *c_file_name_library; i++) {
        if (c_file_name_has(c_file_name_library[i], name, n))
            return 1;
    }
    return 0;
}

/* Returns whether the library has a name of these n characters, or one of which this is a variant:
   sinf, strtol_l, lgammaf_r. */
DEPLOY_FN int c_file_name_of_variant(const char *name, size_t n)
{
    size_t i;
    if (c_file_name_of_library(name, n))
        return 1;
    for (i = 0; i < sizeof c_file_name_ending / sizeof *c_file_name_ending; i++) {
        const size_t ending = strlen(c_file_name_ending[i]);
        if (n > ending && !memcmp(name + n - ending, c_file_name_ending[i], ending)
            && (*c_file_name_ending[i] == '_' ? c_file_name_of_variant(name, n - ending)
                                              : c_file_name_of_library(name, n - ending)))
            return 1;
    }
    return 0;
}

/* Returns whether a function of a generated file may have this name: an identifier of at most
   C_FILE_NAME_MOST characters that nothing else uses. */
DEPLOY_FN int c_file_name_is_free(const char *name)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
    const size_t length = strlen(name);
    size_t i;
    if (!length || length > C_FILE_NAME_MOST || strspn(name, letters) < length
        || strspn(name, letters + 53) || name[length - 1] == '_' || strstr(name, "__"))
        return 0;
    for (i = 0; i < sizeof c_file_name_reserved / sizeof *c_file_name_reserved; i++) {
        if (c_file_name_has(c_file_name_reserved[i], name, length))
            return 0;
    }
    for (i = 0; i < sizeof c_file_name_family / sizeof *c_file_name_family; i++) {
        if (!strncmp(name, c_file_name_family[i], strlen(c_file_name_family[i])))
            return 0;
    }
    /* POSIX reserves names of types */
    return strcmp(name + length - (length > 2 ? 2 : 0), "_t")
           && !c_file_name_of_variant(name, length);
}

/* Writes the name of the function of a file: that of the file without its folder and .c. Returns 0,
   or -1 if the file has another ending or the name is not free. */
DEPLOY_FN int c_file_name_of(char name[C_FILE_NAME_MOST + 1], const char *path)
{
    const char *const slash = strrchr(path, '/');
    const char *const begin = slash ? slash + 1 : path;
    const size_t length = strlen(begin);
    if (length < 3 || length - 2 > C_FILE_NAME_MOST || strcmp(begin + length - 2, ".c"))
        return -1;
    memcpy(name, begin, length - 2);
    name[length - 2] = 0;
    return c_file_name_is_free(name) ? 0 : -1;
}
#endif
