//! The environment variables, as the help lists them.

pub(super) const ENVIRONMENT: &str = "\
Environment (keys of the --config file are the same in lower case, without EXA_MCP_):
  EXA_API_KEY            the Exa API key
  EXA_API_KEYS           pool of keys, comma-separated
  EXA_MCP_RATE_LIMIT     maximum requests per second and key; others wait [default: no limit]
  EXA_SERVICE_KEY        the Exa service key, for team management (--tools team)
  EXA_BASE_URL           another Exa endpoint, such as a proxy [default: https://api.exa.ai]
  EXA_ADMIN_BASE_URL     another endpoint for team management [default: https://admin-api.exa.ai]
  ENABLED_TOOLS          same as --tools, also EXA_MCP_ENABLED_TOOLS [default: default]
  EXA_MCP_STORE          store for notes and tasks: memory:, sqlite:PATH or redis://HOST:PORT [default: memory:]
  EXA_MCP_CACHE_TTL      lifetime of cached results in seconds [default: 300]
  EXA_MCP_CACHE_BYTES    size of the result cache in bytes [default: 33554432]
  EXA_MCP_DEFAULT_TASK_TTL, EXA_MCP_MAX_TASK_TTL
                         lifetime of tasks in milliseconds [default: 3600000, 86400000]
  EXA_MCP_MAX_CONCURRENT_TASKS, EXA_MCP_MAX_CONCURRENT_TASKS_PER_USER
                         concurrent tasks, in total and per user [default: 2000, a tenth over HTTP]
  EXA_MCP_DOLLARS_PER_DAY, EXA_MCP_DOLLARS_PER_MONTH
                         budget of the stdio server and of `call` [default: none]
  EXA_MCP_BUDGET_ON_STORE_FAILURE
                         deny or allow priced calls while the store fails [default: deny]
  EXA_MCP_BUDGET_UNPRICED
                         deny or allow calls without a known price if there is a budget [default: deny]
  EXA_MCP_IMPORT_DIR     directories that imports may read, separated as in PATH [default: none]
  EXA_MCP_CONFIRM_DELETES true: users confirm deletions if the client can ask them [default: false]
  EXA_MCP_CLIENT_TIMEOUT seconds to wait for a response of the client [default: 20 to 300]
  EXA_MCP_PING_INTERVAL  seconds until an idle client is pinged, 0 for never [default: 300]
  EXA_MCP_WEBSET_POLL_INTERVAL
                         seconds between two checks of a subscribed webset, 0 for none [default: 30]
  EXA_MCP_STRUCTURED     full, compact or off: the structuredContent of results [default: compact]
  EXA_MCP_LOG_LEVEL      error, warn, info, debug or trace, on standard error [default: warn]
  EXA_MCP_DEBUG          true: same as EXA_MCP_LOG_LEVEL=debug [default: false]
  EXA_MCP_LOG_FORMAT     text or json: one JSON object per line [default: text]
  EXA_MCP_NO_NETWORK     true: refuse every request to Exa, before a key is read [default: false]
  EXA_MCP_CONFIG         same as --config
  EXA_API_KEY_FILE, EXA_API_KEYS_FILE, EXA_SERVICE_KEY_FILE, EXA_MCP_STORE_FILE
                         files with the values of EXA_API_KEY, EXA_API_KEYS, EXA_SERVICE_KEY, EXA_MCP_STORE";

pub(super) const HTTP_ENVIRONMENT: &str = "\
Environment, in addition to `exa-mcp-server --help` (also available in the --config file):
  EXA_MCP_LISTEN           same as --listen
  MCP_AUTH_TOKEN           admin token; if this or USER_TOKENS is set, clients need a token
  USER_TOKENS              user tokens as token:userId:expiry,...
  MCP_AUTH_TOKEN_FILE, USER_TOKENS_FILE, EXA_MCP_SECRET_FILE
                           files with the values of MCP_AUTH_TOKEN, USER_TOKENS, EXA_MCP_SECRET
  EXA_MCP_ALLOWED_HOSTS    same as --allowed-hosts
  EXA_MCP_ALLOWED_ORIGINS  same as --allowed-origins
  EXA_MCP_TRUSTED_PROXIES  addresses and networks of proxies whose X-Forwarded-For is trusted
  EXA_MCP_ALLOW_KEY_IN_URL true: accept Exa API keys in the URL as exaApiKey [default: false]
  EXA_MCP_SECRET           secret that identities are derived from, so that they survive a restart
  EXA_MCP_TOKEN_LIMITS     default limits of tokens, as JSON
  EXA_MCP_USAGE_DAYS       retention of daily usage in days [default: 400]
  EXA_MCP_STORE            memory:, sqlite:PATH, or redis://[USER:PASSWORD@]HOST:PORT[/DB] for several servers
                           [default: a file in the user's state directory]
  EXA_MCP_METRICS          admin: /metrics for this machine and the admin token; public [default: admin]
  EXA_MCP_MAX_BODY_BYTES   maximum size of a request body [default: 1048576]
  EXA_MCP_READ_TIMEOUT     seconds to send a request head, and again its body [default: 15]
  EXA_MCP_MAX_CONNECTIONS  maximum connections [default: 1024]
  EXA_MCP_MAX_CONNECTIONS_PER_ADDRESS  maximum connections per address [default: 256]
  EXA_MCP_MAX_SESSIONS     maximum sessions [default: 10000]
  EXA_MCP_MAX_SESSIONS_PER_USER  maximum sessions per user [default: 1000]
  EXA_MCP_MAX_SESSIONS_PER_ADDRESS  maximum anonymous sessions per address [default: 200]
  EXA_MCP_MAX_STREAMS_PER_ADDRESS  maximum anonymous streams per address [default: 64]
  EXA_MCP_MAX_TASKS_PER_ADDRESS  maximum anonymous tasks per address [default: 100]
  EXA_MCP_SESSION_IDLE     seconds until an idle session ends [default: 1800]
  EXA_MCP_KEEP_ALIVE       seconds between keep-alive messages on a silent stream [default: 15]
  EXA_MCP_DRAIN_TIMEOUT    seconds for running requests to finish on shutdown [default: 10]";
