import { Argument, Command, Help, InvalidArgumentError, Option } from 'commander';
import { addAccessCommands, addWebhookCommands, list } from './program-access.ts';
import { addNostrCommands } from './program-nostr.ts';
import { version } from './version.ts';

/** One screen for all commands: what is common to all programs is in the usage line. */
const HELP = new Help();
const AGENT_ACTIONS = ['join', 'leave', 'block', 'unblock', 'retire', 'recall', 'spawn'] as const;
const JOIN_POLICIES = ['full', 'summary', 'fresh'];
const VENDORS = ['anthropic', 'openai', 'gemini', 'deepseek'];
const BUSY_POLICIES = ['queue', 'steer', 'interrupt', 'reject'];
/** Of the commands with an API. */
const READ_ONLY = ['--read-only', 'nothing can be written through the page and the API'] as const;
/** Of the processes that run for long. */
const LOG_LEVEL = ['--log-level <level>', 'lines of JSON on stderr (or TROUPE_LOG)'] as const;
/** Of the commands that call models. */
const RECORD = ['--record <file>', 'write every model call to this file'] as const;
const REPLAY = [
  '--replay <file>',
  'answer from a recording instead of models; may be repeated',
  repeated,
] as const;

/**
 * The command line as data. Handlers are loaded when their command runs, so that `--help` and `dev` start fast.
 */
export function createProgram(): Command {
  const program = new Command('troupe')
    .description('A runtime for companies of LLM agents that share one conversation.')
    .version(version(), '--version')
    .usage('[--version | --help] <command>')
    .helpCommand(false)
    .configureHelp({ visibleOptions: (command) => (command.parent ? HELP.visibleOptions(command) : []) })
    .exitOverride();

  program
    .command('dev')
    .description('run the agents and the HTTP API on this machine')
    .argument('[agents-file]', 'default: ./agents.ts, .js or .json, else a demo company')
    .option('--port <n>', 'port, or the first free one after it', wholeNumber(0, 65_535), 4600)
    .option('--host <name>', 'address to listen on', '127.0.0.1')
    .option('--data <dir>', 'data directory, or :memory:', '.troupe')
    .option('--concurrency <n>', 'turns at once', wholeNumber(1, 10_000))
    .option(...RECORD)
    .option(...REPLAY)
    .option(...READ_ONLY)
    .option(...LOG_LEVEL)
    .option('--open', 'open the page in a browser')
    .option('--no-demo', 'with the demo company: no conversation to look at')
    .option('--json', 'one JSON line when ready')
    .action(async (file, options) => (await import('./dev.ts')).dev(file, options));

  services(program.command('serve'))
    .description('the HTTP API of many machines; takes no turns')
    .option('--port <n>', 'port', wholeNumber(0, 65_535), 4600)
    .option('--host <name>', 'address to listen on', '127.0.0.1')
    .option(...READ_ONLY)
    .action(async (file, options) => (await import('./serve.ts')).serve(file, options));

  services(program.command('worker'))
    .description('take turns, beside any number of other workers')
    .option('--concurrency <n>', 'turns at once', wholeNumber(1, 10_000), 64)
    .option(...RECORD)
    .option(...REPLAY)
    .option(
      '--status-port <n>',
      'for health and metrics, or the first free one after it; 0: none',
      wholeNumber(0, 65_535),
      4601,
    )
    .option('--status-host <name>', 'address of these', '127.0.0.1')
    .option('--max-lag <ms>', 'end when nothing ran for so long; 0: never', wholeNumber(0))
    .action(async (file, options) => (await import('./worker.ts')).worker(file, options));

  client(program.command('send'))
    .description('send a message and show the replies')
    .argument('<conversation>')
    .argument('<text>', "the message; '-' reads stdin")
    .option('--to <agents>', 'who should answer: ids, separated by commas', list)
    .option('--as <name>', 'your name')
    .option('--id <id>', 'id of the event: sending it twice stores it once')
    .option('--attach <file>', 'an image, a text or any other file; may be repeated', repeated)
    .addOption(new Option('--while-busy <policy>', 'where an agent is at work').choices(BUSY_POLICIES))
    .option('--wait', 'with a server: stay until the answers are there')
    .action(async (conversation, text, options) =>
      (await import('./act.ts')).send(conversation, text, options),
    );

  client(program.command('run'))
    .description('take a conversation through a workflow')
    .argument('<conversation>')
    .argument('<workflow>', 'its id in the agents file')
    .option('--directive <text>', "what it is for; '-' reads stdin (default: what the workflow says)")
    .option('--run <id>', 'id of the run: begun twice it is one')
    .option('--step <id>', 'go on from this step, with a run that has failed')
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: stay until the run has ended')
    .action(async (conversation, workflow, options) =>
      (await import('./act.ts')).runWorkflow(conversation, workflow, options),
    );

  client(program.command('tasks'))
    .description('what agents wait for, of others and of people')
    .argument('<conversation>')
    .option('--open', 'those that have not ended')
    .option('--tree', 'with the tasks within them')
    .action(async (conversation, options) => (await import('./tasks.ts')).tasks(conversation, options));

  toTask(program.command('answer'))
    .description('answer a question of an agent')
    .argument('<conversation>')
    .argument('<question>', 'its id, or the beginning of it')
    .argument('<text>', "the answer; '-' reads stdin")
    .action(async (conversation, question, text, options) =>
      (await import('./act.ts')).answer(conversation, question, text, options),
    );

  toTask(program.command('approve'))
    .description('let an agent make the call it asks for, or deny it')
    .argument('<conversation>')
    .argument('<request>', 'its id, or the beginning of it')
    .option('--note <text>', 'for the agent')
    .option('--args-hash <hash>', 'only if the arguments are those, as "tasks --json" tells')
    .action(async (conversation, request, options) =>
      (await import('./act.ts')).decide(conversation, request, true, options),
    );

  toTask(program.command('deny', { hidden: true }))
    .description('do not let an agent make the call that it asks for')
    .argument('<conversation>')
    .argument('<request>', 'its id, or the beginning of it')
    .option('--note <text>', 'for the agent')
    .action(async (conversation, request, options) =>
      (await import('./act.ts')).decide(conversation, request, false, options),
    );

  toTask(program.command('cancel'))
    .description('call off a task, a question or a request for approval')
    .argument('<conversation>')
    .argument('<task>', 'its id, or the beginning of it')
    .option('--reason <text>', 'for the agents')
    .action(async (conversation, task, options) =>
      (await import('./act.ts')).cancel(conversation, task, options),
    );

  client(program.command('retry'))
    .description('ask an agent for a turn again that failed or was stopped')
    .argument('<turn>')
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: stay until the answer is there')
    .action(async (turn, options) => (await import('./act.ts')).retry(turn, options));

  client(program.command('fork'))
    .description('go on from an earlier place, in a new conversation')
    .argument('<conversation>')
    .option('--at <seq>', 'up to this event (default: all of it)', wholeNumber(0))
    .option('--turn <id>', 'up to what this turn was to answer')
    .option('--as-conversation <name>', 'id of the new one (default: <conversation>-fork-<seq>)')
    .option('--as <name>', 'your name')
    .action(async (conversation, options) =>
      (await import('./conversation-command.ts')).fork(conversation, options),
    );

  toAgent(program.command('agent'))
    .description('who takes part: join, leave, block, spawn, ...')
    .addArgument(new Argument('<action>').choices(AGENT_ACTIONS))
    .argument('<conversation>')
    .argument('<agent>', 'its id; of "spawn", that of a template')
    .action(async (action, conversation, agent, options) =>
      (await import('./conversation-command.ts')).agentCommand(action, conversation, agent, options),
    );
  for (const action of AGENT_ACTIONS) {
    toAgent(program.command(action, { hidden: true }))
      .description(`the same as: agent ${action}`)
      .argument('<conversation>')
      .argument('<agent>')
      .action(async (conversation, agent, options) =>
        (await import('./conversation-command.ts')).agentCommand(action, conversation, agent, options),
      );
  }

  for (const [command, hidden] of [
    ['archive', false],
    ['reopen', true],
  ] as const) {
    client(program.command(command, { hidden }))
      .description(
        hidden ? 'open an archived conversation again' : 'close a conversation; reopen opens it again',
      )
      .argument('<conversation>')
      .option('--reason <text>', 'for the log')
      .option('--as <name>', 'your name')
      .action(async (conversation, options) =>
        (await import('./conversation-command.ts')).endCommand(command, conversation, options),
      );
  }

  client(program.command('delete'))
    .description('delete a conversation with its threads, for ever')
    .argument('<conversation>')
    .option('--export <file>', 'where it is written before')
    .option('--no-export', 'keep nothing of it')
    .action(async (conversation, options) =>
      (await import('./delete.ts')).deleteConversation(conversation, options),
    );

  client(program.command('context'))
    .description('the exact prompt an agent would be sent next, or was sent')
    .argument('<conversation>')
    .argument('<agent>')
    .option('--turn <id>', 'of this turn: its id or number')
    .option('--step <n>', 'of this model call of the turn', wholeNumber(1))
    .option('--against <id>', 'instead: what changed since the prompt of that turn')
    .option('--cost', "instead: what each prompt cost, with a vendor's cache")
    .addOption(
      new Option('--vendor <name>', "whose cache (default: the model's)")
        .choices(VENDORS)
        .implies({ cost: true }),
    )
    .action(async (conversation, agent, options) =>
      (await import('./context.ts')).context(conversation, agent, options),
    );

  client(program.command('trace'))
    .description('what happened in a turn')
    .argument('<turn>')
    .action(async (turn, options) => (await import('./trace.ts')).trace(turn, options));

  client(program.command('ls'))
    .description('conversations, or the agents of one')
    .argument('[conversation]')
    .action(async (conversation, options) => (await import('./ls.ts')).ls(conversation, options));

  client(program.command('watch'))
    .description('what happens, as it happens')
    .argument('[conversation]')
    .option('--agent <ids>', 'what these do, what is about them and what is for them', list)
    .option('--kind <kinds>', 'events of these kinds, as message,turn.failed', list)
    .option('--problems', 'what went wrong')
    .option('--after <seq>', 'of one conversation: what is stored beyond this, and on', wholeNumber(0))
    .action(async (conversation, options) => (await import('./watch.ts')).watch(conversation, options));

  client(program.command('queues'))
    .description('what waits to be done, and how long it waits')
    .option('--watch', 'a line a second, until Ctrl-C')
    .action(async (options) => (await import('./queues.ts')).queues(options));

  client(program.command('import'))
    .description('read a transcript of another program, or an export')
    .argument('<file>', "'-' reads stdin")
    .option('--conversation <name>', 'id for the conversation')
    .option('--agent <id>', 'whose words the assistant messages are')
    .option('--format <name>', 'default: recognised')
    .action(async (file, options) => (await import('./import.ts')).importFile(file, options));

  client(program.command('export'))
    .description('a conversation as JSON lines, or as a page')
    .argument('<conversation>')
    .option('--html', 'one HTML file to read, which needs nothing else')
    .option('--out <file>', 'default: stdout')
    .action(async (conversation, options) =>
      (await import('./import.ts')).exportConversation(conversation, options),
    );

  addAccessCommands(program, client);
  addWebhookCommands(program, client);
  addNostrCommands(program, client);

  program
    .command('doctor')
    .description('check this machine, its agents file, data and servers')
    .argument('[agents-file]')
    .option('--data <dir>', 'data directory', '.troupe')
    .option('--machines', 'instead: every state of the machines with its legal events')
    .option('--json', 'machine-readable output')
    .action(async (file, options) => (await import('./doctor.ts')).doctor(file, options));

  return program;
}

/** Options of the processes that share MongoDB and Redis. */
function services(command: Command): Command {
  return command
    .argument('[agents-file]', 'default: ./agents.ts, .js or .json')
    .option('--mongodb <url>', 'where the log is (or MONGODB_URL)')
    .option('--redis <url>', 'where wakes are (or REDIS_URL)')
    .option('--prefix <name>', 'keeps troupes on one Redis apart', 'troupe')
    .option(...LOG_LEVEL)
    .option('--json', 'one JSON line when ready');
}

/** Options of the commands that need a troupe, running or on disk. */
function client(command: Command): Command {
  return command
    .option('--url <url>', 'a running server (or TROUPE_URL)')
    .option('--data <dir>', 'else this data directory (default: .troupe)')
    .option('--agents <file>', 'and this agents file')
    .option('--json', 'machine-readable output');
}

/** Options of what people say about agents. */
function toAgent(command: Command): Command {
  return client(command)
    .option('--reason <text>', 'for the log')
    .addOption(new Option('--policy <name>', 'what a newcomer sees of before').choices(JOIN_POLICIES))
    .option('--as <name>', 'your name');
}

/** Options of what people say to tasks. */
function toTask(command: Command): Command {
  return client(command)
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: stay until the agents have answered');
}

function repeated(file: string, files: string[] = []): string[] {
  return [...files, file];
}

function wholeNumber(least: number, most = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return function parseWholeNumber(text) {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    const range = most === Number.MAX_SAFE_INTEGER ? `from ${least}` : `from ${least} to ${most}`;
    throw new InvalidArgumentError(`It must be a whole number ${range}.`);
  };
}
