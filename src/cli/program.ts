import { Argument, Command, Help, InvalidArgumentError, Option } from 'commander';
import { version } from './process/version.ts';
import { LANGUAGES, TEMPLATES } from './init/project-files.ts';

/** Keeps the list of commands on one screen: the options of `troupe` itself are only in the usage line. */
const HELP = new Help();
const AGENT_ACTIONS = [
  'join',
  'leave',
  'block',
  'unblock',
  'retire',
  'reinstate',
  'spawn',
  'compact',
] as const;
/** The former name of `reinstate`, accepted for one version. */
const FORMER_REINSTATE = 'recall';
const JOIN_POLICIES = ['full', 'summary', 'fresh'];
const VENDORS = ['anthropic', 'openai', 'gemini', 'deepseek'];
const MODES = ['chat', 'agent', 'run'];
const BUSY_POLICIES = ['queue', 'steer', 'interrupt', 'reject'];
/** The command line as data. Each handler is loaded when its command runs, so that `--help` and `dev` start fast. */
export function createProgram(): Command {
  const program = new Command('troupe')
    .description('A runtime for companies of LLM agents that share one conversation.')
    .version(version(), '--version')
    .usage('[--version | --help] <command>')
    .helpCommand(false)
    .configureHelp({ visibleOptions: (command) => (command.parent ? HELP.visibleOptions(command) : []) })
    .exitOverride();
  addInitCommand(program);
  addProcessCommands(program);
  addDoorCommands(program);
  addMessageCommands(program);
  addPersonCommand(program);
  addTaskCommands(program);
  addConversationCommands(program);
  addRerunCommands(program);
  addReadCommands(program);
  addTransferCommands(program);
  addAccessCommands(program, client);
  addWebhookCommands(program, client);
  addNostrCommands(program, client);
  addEvalCommands(program, client);
  addDoctorCommand(program);
  addSchemaCommand(program);
  program.addHelpText('after', moreCommands(program));
  return program;
}

/** The commands that would not fit on the help's screen. `join` and similar ones are short for `agent join`. */
function moreCommands({ commands }: Command): string {
  const isShort = (name: string) => AGENT_ACTIONS.some((action) => action === name);
  const hidden = commands
    .filter((command) => Reflect.get(command, '_hidden'))
    .map((command) => command.name());
  return `\nMore, each with --help: ${hidden.filter((name) => !isShort(name)).join(', ')}`;
}

function addMessageCommands(program: Command): void {
  client(program.command('send'))
    .description('send a message and show the replies')
    .argument('<conversation>')
    .argument('<text>', "the message; '-' reads stdin")
    .option('--to <agents>', 'agents that should answer, comma-separated', list)
    .option('--as <name>', 'your name')
    .option('--id <id>', 'id of the message; repeats are not stored')
    .option('--attach <file>', 'file to attach; may be repeated', repeated)
    .addOption(
      new Option('--while-busy <policy>', 'what to do while an agent is busy').choices(BUSY_POLICIES),
    )
    .option('--session <provider:id>', 'session that the addressed agent is to go on with')
    .addOption(new Option('--mode <mode>', 'mode from now on').choices(MODES))
    .option('--people-only', 'for people only: no agent sees it')
    .option('--wait', 'with a server: wait for the answers')
    .action(async (conversation, text, options) =>
      (await import('./commands/act.ts')).send(conversation, text, options),
    );

  client(program.command('run'))
    .description('run a workflow in a conversation')
    .argument('<conversation>')
    .argument('<workflow>', 'id in the agents file')
    .option('--directive <text>', "purpose of the run; '-' reads stdin (default: the workflow's own)")
    .option('--run <id>', 'id of the run; repeating it starts one run')
    .option('--step <id>', 'resume a failed run from this step')
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: wait for the end of the run')
    .action(async (conversation, workflow, options) =>
      (await import('./commands/act.ts')).runWorkflow(conversation, workflow, options),
    );
}

/** The command for what agents are told about the people who write to them. */
function addPersonCommand(program: Command): void {
  client(program.command('person'))
    .description('show or change what agents are told of a person')
    .argument('<id>', 'id of the author, such as ana')
    .option('--name <name>', "how agents call the person; '' removes it")
    .option('--time-zone <zone>', "such as Europe/Berlin; '' removes it")
    .option('--preferences <text>', "what the person asks of answers; '' removes it")
    .option('--forget', 'remove everything')
    .action(async (id, options) => (await import('./commands/tenant.ts')).person(id, options));
}

function addTaskCommands(program: Command): void {
  client(program.command('tasks'))
    .description('list what agents are waiting for')
    .argument('<conversation>')
    .option('--open', 'only open tasks')
    .option('--tree', 'include nested tasks')
    .action(async (conversation, options) =>
      (await import('./commands/tasks.ts')).tasks(conversation, options),
    );

  toTask(program.command('answer'))
    .description("answer an agent's question")
    .argument('<conversation>')
    .argument('<question>', 'id, or its beginning')
    .argument('<text>', "the answer; '-' reads stdin")
    .action(async (conversation, question, text, options) =>
      (await import('./commands/act.ts')).answer(conversation, question, text, options),
    );

  toTask(program.command('approve'))
    .description('approve the tool call an agent asks for; deny refuses it')
    .argument('<conversation>')
    .argument('<request>', 'id, or its beginning')
    .option('--note <text>', 'note for the agent')
    .option('--args <json>', 'run the call with these arguments instead, as a JSON object')
    .option('--args-hash <hash>', 'only if the arguments match this hash, shown by "tasks --json"')
    .action(async (conversation, request, options) =>
      (await import('./commands/act.ts')).decide(conversation, request, true, options),
    );

  toTask(program.command('deny', { hidden: true }))
    .description('refuse the tool call an agent asks for')
    .argument('<conversation>')
    .argument('<request>', 'id, or its beginning')
    .option('--note <text>', 'note for the agent')
    .action(async (conversation, request, options) =>
      (await import('./commands/act.ts')).decide(conversation, request, false, options),
    );

  toTask(program.command('cancel'))
    .description('cancel a task, a question or a request for approval')
    .argument('<conversation>')
    .argument('<task>', 'id, or its beginning')
    .option('--reason <text>', 'reason, shown to the agents')
    .action(async (conversation, task, options) =>
      (await import('./commands/act.ts')).cancel(conversation, task, options),
    );
}

function addRerunCommands(program: Command): void {
  client(program.command('rerun', { hidden: true }))
    .description('run a turn again in a fork, with a change, and show both side by side')
    .argument('<turn>')
    .option('--message <text>', 'other words of the message that began it')
    .option('--instructions <file>', 'other instructions of its agent')
    .option('--model <name>', 'another model')
    .option('--provider <name>', 'with --model: the provider of another agent')
    .option('--result <call=file>', 'another result of a call')
    .addOption(
      new Option('--tools <how>', 'calls that the turn has no result of').choices(['recorded', 'run']),
    )
    .option('--as-conversation <name>', 'id of the fork (default: <conversation>-fork-<seq>)')
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: wait for the turn, and compare')
    .action(async (turn, options) => (await import('./commands/rerun.ts')).rerun(turn, options));

  client(program.command('compare', { hidden: true }))
    .description('two turns side by side: words, calls, tokens, cost')
    .argument('<turn>')
    .argument('<other>')
    .action(async (turn, other, options) =>
      (await import('./commands/rerun.ts')).compare(turn, other, options),
    );
}

/** Commands that change conversations and their participants. */
function addConversationCommands(program: Command): void {
  client(program.command('retry'))
    .description('retry a turn; fork goes on from a point, rerun changes it')
    .argument('<turn>')
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: wait for the answer')
    .action(async (turn, options) => (await import('./commands/act.ts')).retry(turn, options));

  client(program.command('fork', { hidden: true }))
    .description('continue from an earlier point in a new conversation')
    .argument('<conversation>')
    .option('--at <seq>', 'up to this event (default: the last one)', wholeNumber(0))
    .option('--turn <id>', 'up to the messages this turn answers')
    .option('--as-conversation <name>', 'id of the new one (default: <conversation>-fork-<seq>)')
    .option('--as <name>', 'your name')
    .action(async (conversation, options) => (await import('./commands/act.ts')).fork(conversation, options));

  toAgent(program.command('agent'))
    .description('change who takes part: join, leave, block, spawn, ...')
    .addArgument(new Argument('<action>').choices(AGENT_ACTIONS).argParser(agentAction))
    .argument('<conversation>')
    .argument('<agent>', 'agent id; for "spawn", a template id')
    .action(async (action, conversation, agent, options) =>
      (await import('./commands/act.ts')).agentCommand(action, conversation, agent, options),
    );
  for (const action of AGENT_ACTIONS) {
    const command = program.command(action, { hidden: true });
    if (action === 'reinstate') command.alias(FORMER_REINSTATE);
    toAgent(command)
      .description(`the same as: agent ${action}`)
      .argument('<conversation>')
      .argument('<agent>')
      .action(async (conversation, agent, options) =>
        (await import('./commands/act.ts')).agentCommand(action, conversation, agent, options),
      );
  }

  for (const [command, hidden] of [
    ['archive', false],
    ['reopen', true],
  ] as const) {
    client(program.command(command, { hidden }))
      .description(hidden ? 'reopen an archived conversation' : 'archive a conversation; reopen reopens it')
      .argument('<conversation>')
      .option('--reason <text>', 'reason, kept in the log')
      .option('--as <name>', 'your name')
      .action(async (conversation, options) =>
        (await import('./commands/act.ts')).endCommand(command, conversation, options),
      );
  }

  client(program.command('delete'))
    .description('delete a conversation; `erase` forgets people, too')
    .argument('<conversation>')
    .option('--export <file>', 'export it to this file first')
    .option('--no-export', 'delete without an export')
    .action(async (conversation, options) =>
      (await import('./commands/transfer.ts')).deleteConversation(conversation, options),
    );

  client(program.command('erase', { hidden: true }))
    .description(
      'erase for good what a person has said and what agents made of it, a conversation, or a tenant',
    )
    .argument('[person]', 'id of the author')
    .option('--conversation <id>', 'a conversation with its threads and files')
    .option('--whole-tenant <id>', 'all conversations, files and profiles of the tenant')
    .option('--yes', 'confirm it')
    .option('--as <name>', 'your name')
    .action(async (person, options) => (await import('./commands/transfer.ts')).erase(person, options));
}

function addReadCommands(program: Command): void {
  client(program.command('context'))
    .description('show the exact prompt of an agent, the next or a past one')
    .argument('<conversation>')
    .argument('<agent>')
    .option('--turn <id>', 'the prompt of this turn, by id or number')
    .option('--step <n>', 'the prompt of this model call of the turn', wholeNumber(1))
    .option('--against <id>', 'show what changed since the prompt of this turn')
    .option('--cache-cost', "show what each prompt cost with a vendor's cache")
    .addOption(
      new Option('--vendor <name>', "vendor of the cache (default: the model's)")
        .choices(VENDORS)
        .implies({ cacheCost: true }),
    )
    .action(async (conversation, agent, options) =>
      (await import('./commands/context.ts')).context(conversation, agent, options),
    );

  client(program.command('cost', { hidden: true }))
    .description('show what a conversation cost in dollars, by agent, tool, model and day')
    .argument('<conversation>')
    .action(async (conversation, options) =>
      (await import('./commands/overview.ts')).cost(conversation, options),
    );

  client(program.command('trace'))
    .description('show what happened in a turn; cost counts dollars')
    .argument('<turn>')
    .action(async (turn, options) => (await import('./commands/overview.ts')).trace(turn, options));

  client(program.command('ls'))
    .description('list conversations, or the agents of one')
    .argument('[conversation]')
    .addOption(new Option('--kind <kind>', 'only these conversations').choices(['conversation', 'thread']))
    .action(async (conversation, options) =>
      (await import('./commands/overview.ts')).ls(conversation, options),
    );

  client(program.command('watch'))
    .description('show events as they happen')
    .argument('[conversation]')
    .option('--agent <ids>', 'only events by, about or for these agents', list)
    .option('--kind <kinds>', 'only these kinds, such as message,turn.failed', list)
    .option('--problems', 'only problems')
    .option('--after <seq>', 'for one conversation: start after this event', wholeNumber(0))
    .action(async (conversation, options) =>
      (await import('./commands/watch.ts')).watch(conversation, options),
    );

  client(program.command('queues'))
    .description('show queued work and how long it has waited')
    .option('--watch', 'print a line every second until Ctrl-C')
    .action(async (options) => (await import('./commands/overview.ts')).queues(options));

  client(program.command('stuck'))
    .description('show what does not go on, and what can be done')
    .option('--after <seconds>', 'age from which something counts (default: by its kind)', wholeNumber(0))
    .action(async (options) => (await import('./commands/overview.ts')).stuck(options));
}

function addTransferCommands(program: Command): void {
  client(program.command('import'))
    .description('import a transcript or an export')
    .argument('<file>', "'-' reads stdin")
    .option('--conversation <name>', 'id of the new conversation')
    .option('--agent <id>', 'author of the assistant messages, an agent id')
    .option('--format <name>', 'format of the file (default: detected)')
    .option('--dry-run', 'read the file and report what it holds; store nothing')
    .action(async (file, options) => (await import('./commands/transfer.ts')).importFile(file, options));

  client(program.command('export'))
    .description('export a conversation with its threads, or as HTML')
    .argument('<conversation>')
    .option('--no-threads', 'without the threads of its tasks')
    .option('--html', 'one self-contained HTML file')
    .option('--keep-secrets', 'with what looks like keys, tokens, card numbers and passwords')
    .option('--out <file>', 'write to this file (default: stdout)')
    .action(async (conversation, options) =>
      (await import('./commands/transfer.ts')).exportConversation(conversation, options),
    );
}

function addDoctorCommand(program: Command): void {
  program
    .command('doctor')
    .description('check this machine, its agents file, data and servers')
    .argument('[agents-file]')
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--verify [conversations...]', 'verify what is stored: all conversations, or these')
    .option('--url <url>', 'with --verify: a running server (or TROUPE_URL)')
    .option('--machines', 'list the states of every state machine, with their legal events')
    .option('--json', 'machine-readable output')
    .action(async (file, options) => (await import('./commands/doctor.ts')).doctor(file, options));
}

/** Options of the commands that need a troupe, running or on disk. */
function client(command: Command): Command {
  return command
    .option('--url <url>', 'a running server (or TROUPE_URL)')
    .option('--data <dir>', 'data directory, without a server (default: .troupe)')
    .option('--agents <file>', 'agents file (default: ./agents.ts, .js, .json, .yaml)')
    .option('--json', 'machine-readable output');
}

function toAgent(command: Command): Command {
  return client(command)
    .option('--reason <text>', 'reason, kept in the log')
    .addOption(new Option('--policy <name>', 'how much history a joining agent sees').choices(JOIN_POLICIES))
    .option('--as <name>', 'your name');
}

/** Options of commands that answer or end tasks. */
function toTask(command: Command): Command {
  return client(command)
    .option('--as <name>', 'your name')
    .option('--wait', 'with a server: wait for the agents to answer');
}

function agentAction(name: string): string {
  const action = name === FORMER_REINSTATE ? 'reinstate' : name;
  if (AGENT_ACTIONS.some((each) => each === action)) return action;
  throw new InvalidArgumentError(`Allowed choices are ${AGENT_ACTIONS.join(', ')}.`);
}

const SCOPES = ['read', 'write', 'operate', 'admin', 'erase'];
const UNITS: Record<string, number> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };
const MAX_GRACE_DAYS = 30;

/** `troupe keys …`; `client` adds the options of commands that need a troupe. */
export function addAccessCommands(program: Command, client: (command: Command) => Command): void {
  const keys = program
    .command('keys')
    .description('manage API keys: create, ls, rotate, revoke')
    .helpCommand(false);

  ofTenant(client(keys.command('create')))
    .description('create a key and show it once')
    .argument('<name>', 'its owner or purpose')
    .addOption(
      new Option('--scopes <list>', 'any of read, write, operate, admin')
        .argParser(scopes)
        .default(['read', 'write'], 'read,write'),
    )
    .option('--author <who>', 'the only author it may write as: KIND:ID or KIND:ID:NAME', author)
    .option(
      '--conversations <list>',
      "conversations it may see: ids, or prefixes with '*' (default: all)",
      list,
    )
    .option('--expires <time>', 'lifetime, such as 30d or 12h (default: unlimited)', lifetime)
    .action(async (name, options) => (await import('./commands/tenant.ts')).keysCreate(name, options));

  ofTenant(client(keys.command('ls')))
    .description('list keys, without their secrets')
    .action(async (options) => (await import('./commands/tenant.ts')).keysList(options));

  ofTenant(client(keys.command('rotate')))
    .description('give a key a new secret and show it once')
    .argument('<id>')
    .option('--grace <time>', 'how long the old secret stays valid, such as 1h (default: not at all)', grace)
    .action(async (id, options) => (await import('./commands/tenant.ts')).keysRotate(id, options));

  ofTenant(client(keys.command('revoke')))
    .description('revoke a key permanently')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/tenant.ts')).keysRevoke(id, options));
}

function list(text: string): string[] {
  return text
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
}

function scopes(text: string): string[] {
  const named = list(text);
  if (named.length > 0 && named.every((scope) => SCOPES.includes(scope))) return named;
  throw new InvalidArgumentError(`Scopes are ${SCOPES.join(', ')}, separated by commas.`);
}

function author(text: string): string {
  if (/^(?:user|agent|system):[^:]/.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be KIND:ID or KIND:ID:NAME, such as user:ana:Ana; kinds are user, agent and system.',
  );
}

function lifetime(text: string): number {
  const ms = duration(text);
  if (ms > 0) return ms;
  throw new InvalidArgumentError('The key would never be valid.');
}

function grace(text: string): number {
  const ms = duration(text);
  if (ms <= MAX_GRACE_DAYS * 86_400_000) return ms;
  throw new InvalidArgumentError(`It must be at most ${MAX_GRACE_DAYS}d.`);
}

function duration(text: string): number {
  const [, number, unit = ''] = /^(\d{1,6})([smhd])$/.exec(text) ?? [];
  const factor = UNITS[unit];
  if (number === undefined || factor === undefined)
    throw new InvalidArgumentError('It must be a number with s, m, h or d, such as 30d.');
  return Number(number) * factor;
}

/** The pattern of `TenantId`, repeated here because loading its schema would slow down `--help`. */
const TENANT = /^[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}$/;

function ofTenant(command: Command): Command {
  return command.option('--tenant <id>', 'tenant to use (default: your own)', tenantId);
}

function tenantId(text: string): string {
  if (TENANT.test(text)) return text;
  throw new InvalidArgumentError(
    'It must be 1 to 128 of A-Z a-z 0-9 . _ @ : - and start with a letter or digit.',
  );
}

/** `troupe webhooks …`; `client` adds the options of the commands that need a troupe. */
export function addWebhookCommands(program: Command, client: (command: Command) => Command): void {
  const webhooks = program
    .command('webhooks')
    .description('send signed events to URLs: create, ls, test, rotate, rm')
    .helpCommand(false);
  const add = (command: Command) => ofTenant(client(command));

  add(webhooks.command('create'))
    .description('send events of chosen kinds to a URL, and print the signing secret')
    .argument('<url>')
    .requiredOption('--on <kinds>', 'event kinds, such as message,approval.requested; "*": all', list)
    .option('--conversations <ids>', 'only these conversations; "plan*" matches a prefix', list)
    .option('--name <name>', 'display name')
    .action(async (url, options) => (await import('./commands/tenant.ts')).webhooksCreate(url, options));

  add(webhooks.command('ls'))
    .description('list webhooks and the state of their deliveries')
    .action(async (options) => (await import('./commands/tenant.ts')).webhooksList(options));

  add(webhooks.command('rm'))
    .description('remove a webhook')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/tenant.ts')).webhooksRemove(id, options));

  add(webhooks.command('test'))
    .description('send a ping now; a disabled webhook that accepts it is enabled again')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/tenant.ts')).webhooksTest(id, options));

  add(webhooks.command('rotate'))
    .description('create a new secret; the old one also signs for 24 hours')
    .argument('<id>')
    .action(async (id, options) => (await import('./commands/tenant.ts')).webhooksRotate(id, options));
}

function addNostrCommands(program: Command, client: (command: Command) => Command): void {
  const nostr = program
    .command('nostr')
    .description('manage agent keys for Nostr, and check relays')
    .helpCommand(false);
  const keys = nostr.command('keys').description('manage the keys that agents sign with').helpCommand(false);

  stored(keys.command('create'))
    .description('create a key for an agent')
    .argument('<agent>')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).createKey(agent, options));

  stored(keys.command('import'))
    .description('import a key, nsec1… or hex, from stdin')
    .argument('<agent>')
    .option('--env <name>', 'read the key from this environment variable instead')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).importKey(agent, options));

  stored(keys.command('ls'))
    .description('list the agents that have keys')
    .action(async (options) => (await import('./commands/nostr.ts')).listKeys(options));

  stored(keys.command('export'))
    .description('print the secret key of an agent')
    .argument('<agent>')
    .option('--show-secret', 'confirm that the secret is printed')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).exportKey(agent, options));

  stored(keys.command('rm'))
    .description('remove the key of an agent permanently')
    .argument('<agent>')
    .option('--yes', 'confirm the removal')
    .action(async (agent, options) => (await import('./commands/nostr.ts')).removeKey(agent, options));

  client(nostr.command('status'))
    .description('show the state of the relays of a running server')
    .action(async (options) => (await import('./commands/nostr.ts')).showStatus(options));

  nostr
    .command('test')
    .description('connect to a relay, read from it and write to it')
    .argument('<relay>', 'its URL, such as wss://relay.example')
    .option('--json', 'machine-readable output')
    .action(async (relay, options) => (await import('./commands/nostr.ts')).testRelay(relay, options));
}

/** Options of commands that open the store themselves. */
function stored(command: Command): Command {
  return command
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--mongodb <url>', 'with several machines: database of the log')
    .option('--postgres <url>', 'the same in PostgreSQL')
    .option('--redis <url>', 'with several machines: server of the queue')
    .option('--agents <file>', 'agents file (default: ./agents.ts, .js, .json, .yaml)')
    .option('--json', 'machine-readable output');
}

/** For commands with an API. */
const READ_ONLY = ['--read-only', 'refuse all writes through the page and the API'] as const;
const TLS_CERT = ['--tls-cert <file>', 'certificate in PEM: HTTPS with HTTP/2'] as const;
const TLS_KEY = ['--tls-key <file>', 'its key in PEM'] as const;
/** For long-running processes. */
const LOG_LEVEL = ['--log-level <level>', 'log JSON lines to stderr at this level (or TROUPE_LOG)'] as const;
/** For commands that call models. */
const RECORD = ['--record <file>', 'write every model call to this file'] as const;
const REPLAY = [
  '--replay <file>',
  'answer from a recording instead of models; may be repeated',
  repeated,
] as const;

function addInitCommand(program: Command): void {
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

/** Adds the command that editors need. */
function addSchemaCommand(program: Command): void {
  program
    .command('schema', { hidden: true })
    .description('print the JSON schema of the agents file')
    .option('--json', 'on one line')
    .action(async (options) => (await import('./commands/schema.ts')).schema(options));
}

function addProcessCommands(program: Command): void {
  program
    .command('dev')
    .description('run the agents and the HTTP API on this machine')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml, else a demo company')
    .option('--port <n>', 'port, or the first free one after it', wholeNumber(0, 65_535), 4600)
    .option('--host <name>', 'address to listen on', '127.0.0.1')
    .option('--data <dir>', 'data directory, or :memory:', '.troupe')
    .option('--concurrency <n>', 'most turns at once', wholeNumber(1, 10_000))
    // Hidden, because they are rare and the help should fit on a screen. docs/reference/commands.md describes them.
    .addOption(new Option(...TLS_CERT).hideHelp())
    .addOption(new Option(...TLS_KEY).hideHelp())
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
    .option(...TLS_CERT)
    .option(...TLS_KEY)
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
function addDoorCommands(program: Command): void {
  program
    .command('mcp')
    .description('serve an MCP client at stdin and stdout; acp an editor')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml')
    .option('--url <url>', 'a running server (or TROUPE_URL)')
    .option('--data <dir>', 'data directory, without a server (default: .troupe)')
    .option('--as <name>', 'your name')
    .action(async (agents, options) => (await import('./commands/stdio.ts')).mcp({ agents, ...options }));
  program
    .command('acp', { hidden: true })
    .description('serve an editor by the Agent Client Protocol, at stdin and stdout')
    .argument('[agents-file]', 'default: ./agents.ts, .js, .json, .yaml')
    .option('--data <dir>', 'data directory (default: .troupe)')
    .option('--as <name>', 'your name')
    .action(async (agents, options) => (await import('./commands/stdio.ts')).acp({ agents, ...options }));
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

/** `troupe eval …`; `client` adds the options of commands that need a troupe. */
function addEvalCommands(program: Command, client: (command: Command) => Command): void {
  const evals = program
    .command('eval', { hidden: true })
    .description('tests of conversations: record, compare, show')
    .helpCommand(false);

  client(evals.command('record'))
    .description('write a test that plays a conversation again, and its recording')
    .argument('<conversation>')
    .option('--out <file>', 'name of the test, without .test.ts (default: the conversation)')
    .action(async (conversation, options) =>
      (await import('./commands/eval.ts')).evalRecord(conversation, options),
    );

  evals
    .command('compare')
    .description('compare scores with a baseline; exit code 1 if one is worse')
    .argument('<before>', 'scores.json of the baseline')
    .argument('<after>', 'scores.json')
    .option('--json', 'machine-readable output')
    .action(async (before, after, options) =>
      (await import('./commands/eval.ts')).evalCompare(before, after, options),
    );

  evals
    .command('show')
    .description('show scores and the conversations behind them, beside a baseline')
    .argument('<folder>', 'folder with scores.json, and runs that were kept')
    .argument('[baseline]', 'folder of the baseline')
    .option('--port <n>', 'port, or the first free one after it', wholeNumber(0, 65_535), 4600)
    .option('--open', 'open the page in a browser')
    .option('--json', 'print one JSON line when ready')
    .action(async (folder, baseline, options) =>
      (await import('./commands/eval.ts')).evalShow(folder, baseline, options),
    );
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
