import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  TroupeError,
  type Event,
  type TestClock,
  type Troupe,
  type Wait,
  createTestClock,
  openTestTroupe,
  type ModelEvent,
  type Provider,
  nearestName,
  type ToolContext,
} from './troupe.ts';
import {
  type Company,
  prepareCompany,
  type Replacements,
  type TroupeSettings,
  type OpenedCompany,
  type ToolStub,
} from './company.ts';
import {
  type ConversationRun,
  type RunEnd,
  type RunPlace,
  type RunUser,
  NO_USAGE,
} from './conversation-run.ts';
import { readRun } from './read-run.ts';
import {
  type Recording,
  changeIn,
  refusalIn,
  refusal,
  type RecordedAnswer,
  comparable,
  type RecordedCall,
} from './recording.ts';
import { scriptedUser, type Step, type NewUser, type User, type Seen, type UserMove } from './users.ts';
import { clip } from './show-run.ts';

/** The people of a conversation: one or more steps of a script, or one or more users. */
export type Users = Step | readonly Step[] | { readonly users: readonly NewUser[] };

/** Options of a run. */
export interface PlayOptions extends Replacements {
  /** Id of the conversation. Default: that of the recording, else `conversation`. */
  conversation?: string | undefined;
  /**
   * Recorded answers that replace models and tools: see `readRecording`. The run is impossible if it needs an answer that was
   * not recorded, or if an agent's instructions or tools have changed. Default: none.
   */
  recording?: Recording | undefined;
  /** Number of the run, from 1, for users with randomness. Default 1. */
  seed?: number | undefined;
  /** Where the data are: in memory, or in a new folder in the system's folder for temporary files. Default `memory`. */
  data?: 'memory' | 'folder' | undefined;
  /** Most moves of all users. Default 200. */
  mostMoves?: number | undefined;
  /** Further options of `createTroupe`: `replay`, `record`, `env`, `app`. */
  troupe?: TroupeSettings | undefined;
}

const MOST_MOVES = 200;

/**
 * Plays a conversation with a company, and resolves to its log in the form for matchers. The clock begins at the same date
 * each time and advances only when the script says so; with real models it runs as usual. Throws `config_invalid`, and
 * `command_refused` if a user makes a move that is not possible.
 *
 *     const run = await playConversation(company, 'Where is my parcel?');
 *     expect(run).toHaveSaid('desk', /on its way/);
 */
export async function playConversation(
  company: Company,
  users: Users,
  options: PlayOptions = {},
): Promise<ConversationRun> {
  const run = await playToItsEnd(company, users, options);
  if (run.ended.kind === 'impossible')
    throw new TroupeError('command_refused', run.ended.why, { conversation: run.conversation });
  return run;
}

/**
 * Like `playConversation`, but if a move is not possible, resolves to what was played so far. `folder`: the data directory;
 * null: in memory.
 */
export async function playToItsEnd(
  company: Company,
  users: Users,
  options: PlayOptions = {},
  folder: string | null = options.data === 'folder' ? newFolder() : null,
): Promise<ConversationRun> {
  const { recording, seed = 1, mostMoves = MOST_MOVES } = options;
  const { conversation = recording?.conversation ?? 'conversation' } = options;
  const prepared = await prepareCompany(company, recording ? replacementsOf(recording, options) : options);
  const { agentsFile } = prepared;
  const place: RunPlace | null = folder === null ? null : { data: folder, agentsFile };
  const people: User[] = [];
  try {
    await using opened = await openCompany(prepared, options.troupe, {
      data: place?.data,
      startsAt: recording?.startsAt,
    });
    const { troupe, clock } = opened;
    for (const newUser of usersOf(users))
      people.push(newUser({ seed, conversation, troupe: options.troupe }));
    const ended: RunEnd = await playUsers(troupe, people, { conversation, clock, mostMoves });
    const endedAt = clock.now();
    const reports = await endUsers(people);
    const run = await readRun(troupe, conversation, { ended, endedAt, place, users: reports });
    return comparedWith(options, run);
  } catch (error) {
    await endUsers(people).catch(() => undefined); // The first error is the one to report.
    discard(place);
    throw error;
  }
}

function newFolder(): string {
  return mkdtempSync(path.join(tmpdir(), 'troupe-eval-'));
}

/** Ends each user once, even if another one fails to end. */
async function endUsers(people: User[]): Promise<RunUser[]> {
  const ends = await Promise.allSettled(people.splice(0).map(async (user) => user.end?.()));
  return ends.flatMap((end) => {
    if (end.status === 'rejected') throw end.reason;
    return end.value ?? [];
  });
}

/** A run that has left its recording is impossible. If models are replaced, changed instructions are what is being tested. */
function comparedWith({ recording, models }: PlayOptions, run: ConversationRun): ConversationRun {
  const changed = recording && models === undefined ? changeIn(run, recording) : null;
  const why = changed ?? refusalIn(run);
  return why === null ? run : { ...run, ended: { kind: 'impossible', why } };
}

function replacementsOf(recording: Recording, { models, tools }: Replacements): Replacements {
  return {
    models: { ...recordedModels(recording), ...models },
    tools: { ...recordedTools(recording), ...tools },
    standIns: recording.standIns,
    servers: recording.servers,
  };
}

export function discard(place: RunPlace | null): void {
  if (place) rmSync(place.data, { recursive: true, force: true });
}

function usersOf(users: Users): readonly NewUser[] {
  if (typeof users === 'object' && 'users' in users) return users.users;
  return [scriptedUser([users].flat() as Step[])];
}

interface Parts {
  conversation: string;
  clock: TestClock;
  mostMoves: number;
}

const MS_PER_MINUTE = 60_000;

/**
 * Asks the users for moves, one at a time, until all are done or nobody moves. A user that waits is asked again after another
 * user's move. Time passes only if all others wait or are done.
 */
export async function playUsers(troupe: Troupe, users: readonly User[], parts: Parts): Promise<RunEnd> {
  using stage = openStage(troupe, parts);
  const done = new Set<User>();
  const waiting = new Map<User, number>();
  for (let moves = 0; done.size < users.length;) {
    const user = users.find((each) => !done.has(each) && !waiting.has(each));
    if (!user) {
      const minutes = Math.min(...waiting.values());
      // All wait for others, so nothing more will happen.
      if (minutes === Infinity) break;
      await stage.pass(minutes);
      for (const [each, left] of waiting)
        if (left <= minutes) waiting.delete(each);
        else waiting.set(each, left - minutes);
      continue;
    }
    const move = await user.next(await stage.seenBy(user));
    if (move.move === 'stop') return { kind: 'impossible', why: `${user.name} cannot go on: ${move.why}` };
    if (move.move === 'done') done.add(user);
    else if (move.move === 'wait') waiting.set(user, move.minutes ?? Infinity);
    else {
      moves += 1;
      if (moves > parts.mostMoves)
        return { kind: 'impossible', why: `${user.name} has made ${parts.mostMoves} moves: it does not end` };
      const why = await stage.act(move);
      if (why !== null) return { kind: 'impossible', why: `move ${moves} of ${user.name}: ${why}` };
      waiting.clear();
    }
  }
  return { kind: 'done' };
}

type ActingMove = Exclude<UserMove, { move: 'wait' | 'done' | 'stop' }>;

function openStage(troupe: Troupe, { conversation, clock }: Parts) {
  const events: Event[] = [];
  const known = new Map<User, number>();
  const began = clock.now();
  const stop = troupe.watch((note) => {
    if (note.type === 'event') events.push(note.event);
  });
  let messages = 0;

  async function open(): Promise<Wait[]> {
    return events.length === 0 ? [] : openWaits(troupe, conversation, new Set());
  }

  /** Null, or the reason why the move is not possible. */
  async function act(move: ActingMove): Promise<string | null> {
    try {
      if (move.move === 'say') {
        const { by: author, content, to, attachments } = move;
        messages += 1;
        const id = `said-${messages}`;
        await troupe.send(conversation, { id, author, content, to, attachments });
      } else {
        const waits = await open();
        const wait = waits.find((each) => isFor(each, move));
        if (!wait) return notAsked(move, waits);
        await settle(move, wait);
      }
    } catch (error) {
      if (error instanceof TroupeError) return `${describe(move)}, which is refused: ${error.message}`;
      throw error;
    }
    await rest();
    return null;
  }

  /** A waiting turn, such as one before a retry, has not ended: time passes until it continues. */
  async function rest(): Promise<void> {
    await troupe.idle();
    for (let ms = clock.untilNext(); ms !== null; ms = clock.untilNext()) await clock.pass(ms);
  }

  async function settle(move: Exclude<ActingMove, { move: 'say' }>, { conversation: at, task }: Wait) {
    if (move.move === 'answer') {
      const { content, by } = move;
      await troupe.command({ command: 'answer', conversation: at, question: task.id, content }, by);
      return;
    }
    const { by, note } = move;
    const { id: request, argsHash } = task;
    const approved = move.move === 'approve';
    const decision = { approved, ...(note && { note }), ...(argsHash && { argsHash }) };
    await troupe.command({ command: 'decide', conversation: at, request, ...decision }, by);
  }

  return {
    act,
    async pass(minutes: number): Promise<void> {
      await clock.pass(minutes * MS_PER_MINUTE);
      await rest();
    },
    async seenBy(user: User): Promise<Seen> {
      const news = events.slice(known.get(user) ?? 0);
      known.set(user, events.length);
      const last = events.findLast(({ kind, author }) => kind === 'message' && author.kind === 'agent');
      const said = last?.kind === 'message' ? last.body.content : '';
      const minutes = (clock.now() - began) / MS_PER_MINUTE;
      return { events: [...events], news, said, waits: await open(), minutes };
    },
    [Symbol.dispose]: stop,
  };
}

/** All open questions and approvals for people, in a conversation and in the threads of its open tasks. */
async function openWaits(troupe: Troupe, conversation: string, seen: Set<string>): Promise<Wait[]> {
  if (seen.has(conversation)) return [];
  seen.add(conversation);
  const { tasks } = await troupe.tasks(conversation, { open: true });
  const waits: Wait[] = [];
  for (const task of tasks) {
    if (task.kind !== 'delegation') waits.push({ conversation: conversation as Wait['conversation'], task });
    else if (task.thread !== undefined) waits.push(...(await openWaits(troupe, task.thread, seen)));
  }
  return waits;
}

function isFor({ task }: Wait, move: Exclude<ActingMove, { move: 'say' }>): boolean {
  const { by = [] } = task;
  const kind = move.move === 'answer' ? 'question' : 'approval';
  if (task.kind !== kind || (by.length > 0 && !by.includes(move.by.id))) return false;
  if (move.move === 'answer') return (task.text ?? '').includes(move.question ?? '');
  return move.tool === undefined || task.tool === move.tool;
}

function notAsked(move: ActingMove, waits: readonly Wait[]): string {
  const open = waits.map(({ task: { kind, owner, text, tool, by = [] } }) => {
    const who = by.length > 0 ? by.join(', ') : 'anybody';
    return kind === 'question'
      ? `${owner} asks ${who} ${JSON.stringify(clip(text ?? ''))}`
      : `${owner} asks ${who} to approve ${tool}`;
  });
  return `${describe(move)}, but nobody asks for that; ${open.length > 0 ? open.join('; ') : 'nothing is asked of anybody'}`;
}

function describe(move: ActingMove): string {
  const { name } = move.by;
  switch (move.move) {
    case 'say':
      return `${name} says ${JSON.stringify(clip(move.content))}`;
    case 'answer':
      return `${name} answers ${JSON.stringify(clip(move.content))}`;
    case 'approve':
    case 'deny': {
      const verb = move.move === 'approve' ? 'approves' : 'denies';
      return `${name} ${verb} ${move.tool ?? 'a call'}`;
    }
  }
}

/** An open company, on the clock of its run. */
export interface CompanyAtWork extends AsyncDisposable {
  troupe: Troupe;
  clock: TestClock;
}

/** When and where a company is opened. */
interface Circumstances {
  /** The data directory. Default: in memory. */
  data?: string | undefined;
  /** Start of its clock, ms since the epoch. Default: the same as in every test. */
  startsAt?: number | undefined;
}

/** Limit of steps without anything new. */
const FOREIGN_REPEATS = 10_000;

/** Throws `config_invalid`. */
export async function openCompany(
  { definition, isScripted, isForeign }: Pick<OpenedCompany, 'definition' | 'isScripted' | 'isForeign'>,
  settings: TroupeSettings = {},
  { data = ':memory:', startsAt }: Circumstances = {},
): Promise<CompanyAtWork> {
  const hasModels = !isScripted && settings.replay === undefined;
  const clock = createTestClock({ stands: !hasModels, startsAt });
  const limits = isForeign ? { maxRepeats: FOREIGN_REPEATS } : {};
  const troupe = await openTestTroupe(definition, { ...settings, clock, data, constants: { limits } });
  return { troupe, clock, [Symbol.asyncDispose]: () => troupe[Symbol.asyncDispose]() };
}

/**
 * Models that give their recorded answers again: for `models` of `playConversation`. An answer belongs to a step of a turn,
 * whatever the prompt is; a step without a recorded answer fails its turn. No vendor is asked, and no key is needed.
 */
export function recordedModels({ answers }: Pick<Recording, 'answers'>): Record<'*', Provider> {
  const byPlace = new Map(answers.map((answer) => [`${answer.turn} ${answer.step}`, answer]));
  async function* stream({ trace }: Parameters<Provider['stream']>[0]): AsyncGenerator<ModelEvent> {
    yield { type: 'start' };
    const { agent, turn, step, purpose } = trace;
    const answer = purpose === undefined ? byPlace.get(`${turn} ${step}`) : undefined;
    const what = purpose === undefined ? `step ${step} of ${turn}` : `a ${purpose} in ${turn}`;
    yield* answer ? eventsOf(answer) : [failure(refusal(`an answer of @${agent} for ${what}`))];
  }
  return { '*': { name: 'recorded', capabilities: CAPABILITIES, stream } };
}

const CAPABILITIES: Provider['capabilities'] = {
  sessionResumption: false,
  rewind: false,
  fork: false,
  interleavedSystem: true,
  toolCalling: true,
  images: true,
  caching: 'automatic',
  reportsUsage: false,
};

function eventsOf({ content, calls = [], failed }: RecordedAnswer): ModelEvent[] {
  const said: ModelEvent[] = content === '' ? [] : [{ type: 'text', delta: content }];
  if (failed !== undefined) return [...said, failure(failed)];
  return [
    ...said,
    ...calls.map((call): ModelEvent => ({ type: 'call', call })),
    { type: 'done', stop: calls.length > 0 ? 'calls' : 'end', usage: NO_USAGE },
  ];
}

/** A code that is not retried, because pauses between tries take real time. */
function failure(message: string): ModelEvent {
  return { type: 'failed', error: { code: 'provider_refused', message } };
}

const MOST_COMPARED = 1_000;
const MOST_SHOWN = 400;

/**
 * Tools that return their recorded results: for `tools` of `playConversation`. A call with other arguments, or of a tool
 * without recorded calls, fails and ends the run as impossible; the message names the nearest recorded call.
 */
export function recordedTools({ calls }: Pick<Recording, 'calls'>): Record<'*', ToolStub> {
  const known = Map.groupBy(calls, ({ tool, args }) => keyOf(tool, args));
  const uses = new Map<string, number>();

  function answer(args: Record<string, unknown>, { turn }: ToolContext, tool: string): string {
    const key = keyOf(tool, args);
    const same = known.get(key);
    if (!same) throw new Error(refusal(`${shown(tool, args)}; ${nearest(tool, args, calls)}`));
    const here = same.filter((call) => call.turn === turn);
    const place = `${turn} ${key}`;
    const use = uses.get(place) ?? 0;
    uses.set(place, use + 1);
    const found = (here.length > 0 ? here : same).at(use) ?? same.at(-1)!;
    if (found.outcome === 'failed') throw new Error(withoutName(found));
    return found.result;
  }
  return { '*': answer };
}

/** Removes the tool's name, which Troupe writes before a tool's error. */
function withoutName({ tool, result }: RecordedCall): string {
  const prefix = `${tool} failed: `;
  return result.startsWith(prefix) ? result.slice(prefix.length) : result;
}

/** Prefers calls of the same tool, then those with the fewest differing arguments. */
function nearest(tool: string, args: Record<string, unknown>, calls: readonly RecordedCall[]): string {
  const names = new Set(calls.map((call) => call.tool));
  const name = names.has(tool) ? tool : nearestName(tool, names);
  const candidates = calls.filter((call) => name === null || call.tool === name).slice(0, MOST_COMPARED);
  const wanted = textsOf(args);
  const [best] = candidates
    .map((call) => ({ call, different: differences(wanted, textsOf(call.args)) }))
    .toSorted((a, b) => a.different - b.different);
  return best ? `the nearest call in it is ${shown(best.call.tool, best.call.args)}` : 'it has no call';
}

function textsOf(args: Record<string, unknown>): Map<string, string> {
  return new Map(Object.entries(args).map(([name, value]) => [name, comparable(value)]));
}

function differences(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): number {
  const names = new Set([...a.keys(), ...b.keys()]);
  return [...names].filter((name) => a.get(name) !== b.get(name)).length;
}

function keyOf(tool: string, args: Record<string, unknown>): string {
  return `${tool} ${comparable(args)}`;
}

function shown(tool: string, args: Record<string, unknown>): string {
  const text = comparable(args);
  return `${tool} ${text.length > MOST_SHOWN ? `${text.slice(0, MOST_SHOWN).toWellFormed()}…` : text}`;
}
