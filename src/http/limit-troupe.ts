import { covers, isGranted, type Principal } from '../library/access/index.ts';
import { conversationHandle } from '../library/conversation-handle.ts';
import { TroupeError } from '../base/errors.ts';
import { type Note, parseTurnId } from '../events/index.ts';
import { messageFrom } from '../library/asking/ask.ts';
import type { Asked, CommandInput, NewMessage, StuckLine, Troupe } from '../library/troupe.ts';
import { checkAllAuthors, checkAuthor, unknownConversation, checkScope } from './permissions.ts';

/** Characters of the source's id with which every fork's id begins, for any seq. */
const FORK_STEM = 90;

/**
 * What limiting does with each member of `Troupe`. A new member does not compile until it is listed here.
 *  - `shared`: passed on unchanged; its routes require a scope of their own.
 *  - `conversation`: reads or changes conversations, so the caller's grant is checked.
 *  - `message`: stores messages, so the caller's author is checked too.
 *  - `handle`: made from the limited members.
 */
const NARROWING = {
  tenant: 'shared',
  forTenant: 'shared',
  people: 'shared',
  webhooks: 'shared',
  doors: 'shared',
  agentKeys: 'shared',
  nostr: 'shared',
  cardKey: 'shared',
  keys: 'shared',
  authenticate: 'shared',
  agents: 'shared',
  workflows: 'shared',
  health: 'shared',
  statusUrl: 'shared',
  close: 'shared',
  [Symbol.asyncDispose]: 'shared',
  conversations: 'conversation',
  listConversations: 'conversation',
  state: 'conversation',
  events: 'conversation',
  attachment: 'conversation',
  verify: 'conversation',
  actors: 'conversation',
  unaddressed: 'conversation',
  tasks: 'conversation',
  prompt: 'conversation',
  promptOf: 'conversation',
  diff: 'conversation',
  compare: 'conversation',
  cost: 'conversation',
  cacheCost: 'conversation',
  trace: 'conversation',
  checkpoint: 'conversation',
  saveCheckpoint: 'conversation',
  standings: 'conversation',
  passages: 'conversation',
  export: 'conversation',
  delete: 'conversation',
  erase: 'conversation',
  watch: 'conversation',
  follow: 'conversation',
  rejoin: 'conversation',
  idle: 'conversation',
  queues: 'conversation',
  stuck: 'conversation',
  budgets: 'conversation',
  send: 'message',
  ask: 'message',
  stream: 'message',
  command: 'message',
  import: 'message',
  conversation: 'handle',
} as const satisfies Record<keyof Troupe, 'shared' | 'conversation' | 'message' | 'handle'>;

type Narrowing = typeof NARROWING;
type Kind = Narrowing[keyof Narrowing];
type Members<K extends Kind> = {
  [M in keyof Narrowing]: Narrowing[M] extends K ? M : never;
}[keyof Narrowing];
type MembersOf<K extends Kind> = Pick<Troupe, Members<K>>;

/**
 * A troupe for one caller, limited to the authors it may write as and the conversations it was granted. Other conversations
 * give the error of unknown ids before anything is looked up.
 */
export function limitTroupe(troupe: Troupe, principal: Principal): Troupe {
  const { author, scopes, conversations: granted } = principal;
  // This caller has no limits, and gets the application's own troupe.
  if (granted === null && author === null && scopes.includes('operate') && scopes.includes('read'))
    return troupe;
  const spoken = limitAuthors(troupe, principal);
  const shared = membersOf(troupe, 'shared');
  const narrowed =
    granted === null
      ? { ...shared, ...membersOf(troupe, 'conversation'), ...spoken }
      : { ...shared, ...limitConversations(troupe, spoken, principal, granted) };
  // The id is validated as for the application itself; each method of the handle checks the grant.
  return { ...narrowed, conversation: (id) => conversationHandle(narrowed, troupe.conversation(id).id) };
}

/** The members of one kind, with methods bound to the troupe. */
function membersOf<K extends Kind>(troupe: Troupe, kind: K): MembersOf<K> {
  const members: Partial<Record<keyof Troupe, unknown>> = {};
  for (const name of Reflect.ownKeys(NARROWING) as (keyof Troupe)[]) {
    if (NARROWING[name] !== kind) continue;
    const member: unknown = troupe[name];
    members[name] = typeof member === 'function' ? (member.bind(troupe) as unknown) : member;
  }
  return members as MembersOf<K>;
}

function limitConversations(
  troupe: Troupe,
  spoken: MembersOf<'message'>,
  principal: Principal,
  granted: readonly string[],
): MembersOf<'conversation' | 'message'> {
  const may = (conversation: string) => isGranted(principal, conversation);
  function check(conversation: string): string {
    if (may(conversation)) return conversation;
    throw unknownConversation(conversation);
  }
  function checkTurn(turn: string, message = `there is no turn "${turn}"`): string {
    const parts = parseTurnId(turn);
    if (!parts || may(parts.conversation)) return turn;
    throw new TroupeError('turn_unknown', message, { turn });
  }

  return {
    send: async (conversation, message) => spoken.send(check(conversation), message),
    ask: async (conversation, asked, options) => spoken.ask(check(conversation), asked, options),
    stream: (conversation, asked, options) => spoken.stream(check(conversation), asked, options),
    follow: (conversation, options) => troupe.follow(check(conversation), options),
    rejoin: (conversation, seq, options) => troupe.rejoin(check(conversation), seq, options),
    idle: async ({ conversation } = {}) =>
      troupe.idle(conversation === undefined ? {} : { conversation: check(conversation) }),
    conversations: async (limit) => (await troupe.listConversations({ limit, among: granted })).conversations,
    listConversations: (query) => troupe.listConversations({ ...query, among: granted }),
    state: async (conversation) => troupe.state(check(conversation)),
    events: async (conversation, range) => troupe.events(check(conversation), range),
    attachment: async (conversation, seq, index) => troupe.attachment(check(conversation), seq, index),
    verify: async (conversation, range) => troupe.verify(check(conversation), range),
    actors: async (conversation) => troupe.actors(check(conversation)),
    unaddressed: async (conversation) => troupe.unaddressed(check(conversation)),
    tasks: async (conversation, options) => troupe.tasks(check(conversation), options),
    prompt: async (conversation, agent) => troupe.prompt(check(conversation), agent),
    promptOf: async (turn, step) => troupe.promptOf(checkTurn(turn, noPrompt(turn, step)), step),
    diff: async (a, b, steps = {}) =>
      troupe.diff(checkTurn(a, noPrompt(a, steps.stepA)), checkTurn(b, noPrompt(b, steps.stepB)), steps),
    cost: async (conversation) => troupe.cost(check(conversation)),
    cacheCost: async (conversation, agent, options) => troupe.cacheCost(check(conversation), agent, options),
    compare: async (a, b) => troupe.compare(checkTurn(a), checkTurn(b)),
    trace: async (turn) => troupe.trace(checkTurn(turn)),
    async command(command, by) {
      checkCommand(command, principal, check, checkTurn);
      return spoken.command(command, by);
    },
    async import(chunks, request) {
      // A file may hold several conversations, whose ids begin with this stem; `mayLeadTo` checks each of them.
      const stem = request.conversation ?? '';
      if (!may(stem) && !covers(principal, `${stem}*`)) throw unknownConversation(stem);
      return spoken.import(chunks, { ...request, mayLeadTo: may });
    },
    checkpoint: async (conversation, reader) => troupe.checkpoint(check(conversation), reader),
    saveCheckpoint: async (conversation, reader, checkpoint) =>
      troupe.saveCheckpoint(check(conversation), reader, checkpoint),
    standings: limitStandings(troupe, granted, check),
    passages: limitPassages(troupe, granted, check),
    async *export(conversation, options) {
      yield* troupe.export(check(conversation), options);
    },
    delete: async (conversation, options) => troupe.delete(check(conversation), options),
    // Needs a grant of all conversations, because a person may have spoken in any of them.
    erase: async () => {
      const message = 'this key is for certain conversations: erasing needs one for the whole tenant';
      throw new TroupeError('command_refused', message);
    },
    watch: (watcher, of) =>
      troupe.watch((note) => {
        if (may(conversationOf(note))) watcher(note);
      }, of),
    ...limitWork(troupe, granted, may),
    // Budgets of other callers stay hidden.
    async budgets(of = {}) {
      if (of.conversation === undefined) return [];
      const lines = await troupe.budgets({ ...of, conversation: check(of.conversation) });
      return lines.filter(({ scope }) => scope === 'conversation');
    },
  };
}

/** Hides the counts of other callers' queues. */
function limitWork(
  troupe: Troupe,
  granted: readonly string[],
  may: (conversation: string) => boolean,
): Pick<Troupe, 'queues' | 'stuck'> {
  const isOwn = ({ conversation }: { conversation: string }) => may(conversation);
  return {
    async queues() {
      const { turns } = await troupe.queues({ own: true });
      const running = turns.running.filter(isOwn);
      const waiting = turns.waiting.filter(isOwn).map((given) => {
        const { line, heldBy } = withoutHolders(given, given.heldBy, may);
        return { ...line, heldBy };
      });
      const counts = { runningTotal: running.length, waitingTotal: waiting.length, oldestMs: null };
      return { waiting: 0, active: 0, delayed: 0, turns: { running, waiting, ...counts }, providers: [] };
    },
    async stuck({ afterMs, limit = 100 } = {}) {
      const { stuck } = await troupe.stuck({ afterMs, limit: Infinity, among: granted });
      const own = stuck.filter(isOwn).map((line) => withoutHidden(line, may));
      return { stuck: own.slice(0, limit), total: own.length };
    },
  };
}

function limitStandings(
  { standings }: Troupe,
  granted: readonly string[],
  check: (conversation: string) => string,
): Troupe['standings'] {
  return {
    list: (query) => standings.list({ ...query, among: granted }),
    // Null, because standings are stored for all conversations of the tenant or for none.
    behind: () => Promise.resolve(null),
    save: async (conversation, standing) => standings.save(check(conversation), standing),
    seqOf: async (conversation) => standings.seqOf(check(conversation)),
  };
}

function limitPassages(
  { passages }: Troupe,
  granted: readonly string[],
  check: (conversation: string) => string,
): Troupe['passages'] {
  return {
    find: (query) => passages.find({ ...query, among: granted }),
    save: async (conversation, some) => passages.save(check(conversation), some),
  };
}

function limitAuthors(troupe: Troupe, principal: Principal): MembersOf<'message'> {
  function checked(asked: Asked): NewMessage {
    const message = messageFrom(asked, principal.author ?? undefined);
    checkAuthor(principal, message.author);
    // Interrupting a turn and setting a mode need the same scope by message as by command.
    if (message.whileBusy === 'interrupt' || message.mode !== undefined) checkScope(principal, 'operate');
    return message;
  }

  return {
    send: async (conversation, message) => troupe.send(conversation, checked(message)),
    ask: async (conversation, asked, options) => troupe.ask(conversation, checked(asked), options),
    stream: (conversation, asked, options) => troupe.stream(conversation, checked(asked), options),
    async command(command, by) {
      checkAuthor(principal, by);
      if (principal.scopes.includes('read') || !TASK_COMMANDS.has(command.command))
        return troupe.command(command, by);
      return commandUnread(troupe, command, by);
    },
    async import(chunks, request) {
      checkAllAuthors(principal);
      const readsAll = principal.conversations === null && principal.scopes.includes('read');
      return troupe.import(chunks, { ...request, readsAll });
    },
  };
}

const TASK_COMMANDS: ReadonlySet<string> = new Set(['answer', 'decide', 'cancelTask']);
const UNREAD: ReadonlySet<string> = new Set(['task_unknown', 'command_refused', 'event_invalid']);

/** A refusal names the task, and who has ended it and how. A caller that may not read gets an error without them. */
async function commandUnread(
  troupe: Troupe,
  command: CommandInput,
  by: Parameters<Troupe['command']>[1],
): Promise<Awaited<ReturnType<Troupe['command']>>> {
  try {
    return await troupe.command(command, by);
  } catch (error) {
    if (!(error instanceof TroupeError) || !UNREAD.has(error.code)) throw error;
    const { command: name } = command;
    const message = `the command ${name} was refused: what it names is not open, or does not allow it; a key with the scope "read" is told more`;
    throw new TroupeError('task_unknown', message, {});
  }
}

/** Throws unless the caller was granted all conversations that a command names or creates. */
function checkCommand(
  command: CommandInput,
  principal: Principal,
  check: (conversation: string) => string,
  checkTurn: (turn: string) => string,
): void {
  if ('turn' in command && command.turn !== undefined) checkTurn(command.turn);
  if ('conversation' in command && command.conversation !== undefined) check(command.conversation);
  if (command.command !== 'fork' && command.command !== 'rerun') return;
  if (command.as !== undefined) return void check(command.as);
  const named = command.command === 'fork' ? command.conversation : undefined;
  const source = named ?? parseTurnId(command.turn ?? '')?.conversation;
  if (source === undefined) return;
  // Beginning of the fork's id; its end is not known yet.
  const name = source.length <= FORK_STEM ? `${source}-fork-` : source.slice(0, FORK_STEM);
  if (!covers(principal, `${name}*`)) throw unknownConversation(name);
}

function noPrompt(turn: string, step: number | undefined): string {
  return `no prompt of turn "${turn}"${step ? ` step ${step}` : ''} was sent`;
}

function conversationOf(note: Note): string {
  return note.type === 'event' ? note.event.conversation : note.conversation;
}

/** Holders in other conversations are counted but not named. */
function withoutHidden(stuck: StuckLine, may: (conversation: string) => boolean): StuckLine {
  if (stuck.reason.kind !== 'slot_full') return stuck;
  const { line, heldBy } = withoutHolders(stuck, stuck.reason.heldBy, may);
  return { ...line, reason: { ...stuck.reason, heldBy } };
}

/** The sentence about a wait ends with the names of its holders. */
function withoutHolders<L extends { words: string }, H extends { conversation: string }>(
  line: L,
  holders: readonly H[],
  may: (conversation: string) => boolean,
): { line: L; heldBy: H[] } {
  const heldBy = holders.filter(({ conversation }) => may(conversation));
  if (heldBy.length === holders.length) return { line, heldBy };
  return { line: { ...line, words: line.words.split(', held by ')[0] ?? '' }, heldBy };
}
