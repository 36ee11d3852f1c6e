import { type Command, Option } from 'commander';
import { LANGUAGES } from './init/project-files.ts';
import { TEMPLATES } from './init/templates.ts';
import { repeated, wholeNumber } from './option-values.ts';

/** For commands with an API. */
const READ_ONLY = ['--read-only', 'refuse all writes through the page and the API'] as const;
/** For long-running processes. */
const LOG_LEVEL = ['--log-level <level>', 'log JSON lines to stderr at this level (or TROUPE_LOG)'] as const;
/** For commands that call models. */
const RECORD = ['--record <file>', 'write every model call to this file'] as const;
const REPLAY = [
  '--replay <file>',
  'answer from a recording instead of models; may be repeated',
  repeated,
] as const;

export function addInitCommand(program: Command): void {
  program
    .command('init')
    .description('write a new project: agents, a test and a start script')
    .argument('[dir]', 'directory of the project', '.')
    .addOption(new Option('--template <name>', 'one agent, or a team of three').choices(TEMPLATES))
    .addOption(new Option('--lang <name>', 'language of the agents file').choices(LANGUAGES))
    .option('--yes', 'ask nothing; what no flag says is one agent in TypeScript')
    .option('--force', 'overwrite files')
    .option('--json', 'machine-readable output; asks nothing')
    .action(async (dir, options) => (await import('./commands/init.ts')).init(dir, options));
}

/** What editors need. */
export function addSchemaCommand(program: Command): void {
  program
    .command('schema', { hidden: true })
    .description('print the JSON schema of the agents file')
    .option('--json', 'on one line')
    .action(async (options) => (await import('./commands/schema.ts')).schema(options));
}

/** Commands that run until they are stopped. */
export function addProcessCommands(program: Command): void {
  program
    .command('dev')
    .description('run the agents and the HTTP API on this machine')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml, else a demo company')
    .option('--port <n>', 'port, or the first free one after it', wholeNumber(0, 65_535), 4600)
    .option('--host <name>', 'address to listen on', '127.0.0.1')
    .option('--data <dir>', 'data directory, or :memory:', '.troupe')
    .option('--concurrency <n>', 'most turns at once', wholeNumber(1, 10_000))
    // Rare, and the help is to fit on a screen: README has it.
    .addOption(new Option('--durability <what>').choices(['disk', 'process']).hideHelp())
    .option(...RECORD)
    .option(...REPLAY)
    .option(...READ_ONLY)
    .option(...LOG_LEVEL)
    .option('--open', 'open the page in a browser')
    .option('--no-reload', 'go on with the agents as they were at the start when their files change')
    .option('--no-demo', 'start the demo company without its sample conversation')
    .option('--json', 'print one JSON line when ready')
    .action(async (file, options) => (await import('./commands/dev.ts')).dev(file, options));

  services(program.command('serve'))
    .description('run the HTTP API for several machines; takes no turns')
    .option('--port <n>', 'port', wholeNumber(0, 65_535), 4600)
    .option('--host <name>', 'address to listen on', '127.0.0.1')
    .option(...READ_ONLY)
    .action(async (file, options) => (await import('./commands/serve.ts')).serve(file, options));

  services(program.command('worker'))
    .description('take turns, alongside any number of other workers')
    .option('--concurrency <n>', 'most turns at once', wholeNumber(1, 10_000), 64)
    .option(...RECORD)
    .option(...REPLAY)
    .option(
      '--status-port <n>',
      'port for health and metrics, or the first free one after it; 0: none',
      wholeNumber(0, 65_535),
      4601,
    )
    .option('--status-host <name>', 'address of the status port', '127.0.0.1')
    .option('--max-lag <ms>', 'exit after a stall of this length; 0: never', wholeNumber(0))
    .action(async (file, options) => (await import('./commands/serve.ts')).worker(file, options));
}

/** Servers for clients of other protocols, at stdin and stdout. */
export function addDoorCommands(program: Command): void {
  program
    .command('mcp')
    .description('serve an MCP client at stdin and stdout; acp an editor')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml')
    .option('--url <url>', 'a running server (or TROUPE_URL)')
    .option('--data <dir>', 'data directory, if no server is named (default: .troupe)')
    .option('--as <name>', 'your name')
    .action(async (agents, options) => (await import('./commands/mcp.ts')).mcp({ agents, ...options }));
  program
    .command('acp', { hidden: true })
    .description('serve an editor by the Agent Client Protocol, at stdin and stdout')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml')
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--as <name>', 'your name')
    .action(async (agents, options) => (await import('./commands/acp.ts')).acp({ agents, ...options }));
}

/** Options of processes that use a database, and Redis if named. */
function services(command: Command): Command {
  return command
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml')
    .option('--mongodb <url>', 'database of the log (or MONGODB_URL)')
    .option('--postgres <url>', 'the same in PostgreSQL (or POSTGRES_URL)')
    .option('--redis <url>', 'queue, unless PostgreSQL holds it (or REDIS_URL)')
    .option('--prefix <name>', 'prefix that separates troupes on one Redis', 'troupe')
    .option(...LOG_LEVEL)
    .option('--json', 'print one JSON line when ready');
}
