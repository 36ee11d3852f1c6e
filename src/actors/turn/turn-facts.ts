import {
  type AboutTurn,
  type DynamicText,
  hashText,
  liveDelta,
  type Memories,
  memoryItem,
  modeItems,
  NO_MEMORIES,
  phaseItem,
  rosterNews,
  stateItem,
  statedUnder,
  type View,
  hasSeveralPeople,
  isUntrusted,
  minute,
  personLabel,
  type StatedItems,
} from '../../context/index.ts';
import {
  type ActorAddress,
  agentAuthor,
  type BaselineBody,
  type Event,
  type EventContext,
  type LiveItems,
  MAX_TOOLSET,
  type ToolSpec,
  isTaskEnd,
  type PersonProfile,
} from '../../events/index.ts';
import { TEXTS } from '../../events/model-texts.ts';
import type { EngineDeps } from '../actor/engine-deps.ts';
import type { FrozenBaseline, AgentRuntime } from '../actor/agent-runtime.ts';
import type { Folded } from '../log/read-log.ts';
import type { TurnDeps } from '../attempt/turn-run.ts';
import { type Directive, directiveOf } from '../../machines/directions.ts';
import { type TaskFold, heldTasks, openTasks, type Task } from '../../machines/task-fold.ts';

const FRAGMENT_DEADLINE_MS = 1_000;

/** Facts that are read once, when a turn is pinned, and recorded with the turn. */
interface TurnFacts {
  directive: Directive | null;
  /** Texts of fragments by name, in order. Null: empty now. A failed fragment is missing. */
  fragments: ReadonlyMap<string, string | null>;
  memories: Memories;
  /** The agent's open tasks and todos, by the names of their live items. */
  workItems: ReadonlyMap<string, string | null>;
  /** Facts about the person; null if the turn answers no person. */
  person: PersonFacts | null;
}

const NO_FACTS: TurnFacts = {
  directive: null,
  fragments: new Map(),
  memories: NO_MEMORIES,
  workItems: new Map(),
  person: null,
};

export async function readFacts(
  deps: TurnDeps,
  { address, runtime }: { address: ActorAddress; runtime: AgentRuntime },
  { view, tasks }: Folded,
  trigger: Event,
): Promise<TurnFacts> {
  const { tenant, conversation, agent } = address;
  const about: AboutTurn = { tenant, conversation, agent, at: trigger.at };
  const directive = directiveOf(view.directions, view.directives);
  const [fragments, memories, workItems, person] = await Promise.all([
    runtime.profile.fragments?.live?.length ? readFragments(deps, runtime, about) : NO_FRAGMENTS,
    runtime.retrieval && view.floor > 0
      ? (deps.features.memory?.retrieve(deps, { address, runtime, view, trigger }) ?? NO_MEMORIES)
      : NO_MEMORIES,
    hasWork(tasks) ? openWorkItems(deps, address, tasks) : NO_WORK,
    readPerson(deps, address, view, trigger),
  ]);
  return { directive, fragments, memories, workItems, person };
}

/** The live items at the start of a turn, only changed ones. The time is that of the trigger, never that of the clock. */
export function liveItems(
  inputs: readonly Event[],
  { view, tasks }: Folded,
  { runtime, baseline }: { runtime: AgentRuntime; baseline: FrozenBaseline },
  { directive, fragments, memories, workItems, person }: TurnFacts = NO_FACTS,
): LiveItems {
  const stated = statedUnder(view.stated, baseline.id);
  const trigger = inputs.at(-1);
  if (!trigger) return {};
  const roster = rosterNews(baseline.body, runtime.baseline, stated.items['roster']);
  const facts: LiveItems = {
    time: timeItem(trigger.at, person),
    task: purposeOf(trigger, tasks),
    ...(person && personItems(person, view, stated)),
    ...modeItems(view.directions.mode, directive, view.agent),
    ...phaseItem(view.directions.phase, runtime.orchestrates),
    ...(trigger.context?.channel !== undefined && channelItem(trigger, runtime.channels, stated)),
    ...stateItem('unavailable', unavailableText(runtime, tasks), stated),
    ...((trigger.kind === 'handoff' || inputs.length > 1 || stated.items['open'] !== undefined) &&
      openItem(inputs, { view, tasks }, stated)),
    ...(roster !== null && { roster }),
  };
  for (const [name, text] of [...workItems, ...fragments])
    Object.assign(facts, stateItem(name, text, stated));
  return {
    ...liveDelta(facts, stated),
    // The header of a single message names its author.
    ...(inputs.length > 1 && targetItem(inputs, view)),
    ...(memories.seqs.length > 0 && memoryItem(memories)),
  };
}

const FROZEN_LAYERS: readonly string[] = ['rules', 'persona', 'tools', 'environment'];

const NO_FRAGMENTS: ReadonlyMap<string, string | null> = new Map();

const NO_WORK: ReadonlyMap<string, string | null> = new Map([
  ['delegations', null],
  ['todos', null],
]);

function hasWork({ tasks, todos }: Folded['tasks']): boolean {
  return tasks.size > 0 || todos.size > 0;
}

/** Hashes of texts that are injected into the turn: the frozen layers and the present fragments. */
export function contextOf(
  { body, tools }: FrozenBaseline,
  { directions: { mode } }: View,
  { directive, fragments, memories }: TurnFacts,
  granted: AgentRuntime['tools'],
): EventContext {
  const given = [...fragments].flatMap(([name, text]) => (text === null ? [] : [[name, hashText(text)]]));
  return {
    ...layersOf(body),
    ...(tools.length > 0 && toolsetOf(tools, granted)),
    ...(mode !== null && { mode }),
    ...(directive && { run: directive.run }),
    ...(given.length > 0 && { fragments: Object.fromEntries(given) }),
    ...(memories.seqs.length > 0 && { memories: memories.seqs }),
  };
}

const layers = new WeakMap<BaselineBody, EventContext>();

/** The hashes of layers, which are the same for all turns of a baseline. */
function layersOf(body: BaselineBody): EventContext {
  const known = layers.get(body);
  if (known) return known;
  const frozen = body.layers.filter(({ name }) => FROZEN_LAYERS.includes(name));
  const found: EventContext = Object.fromEntries(frozen.map(({ name, hash }) => [name, hash]));
  layers.set(body, found);
  return found;
}

function toolsetOf(
  tools: readonly ToolSpec[],
  granted: AgentRuntime['tools'],
): Pick<EventContext, 'toolset'> {
  const names = tools.slice(0, MAX_TOOLSET).map(({ name }) => name);
  const needsApproval = (name: string) => Boolean(granted.get(name)?.needsApproval);
  const more = tools.length - names.length;
  const [approval, free] = [true, false].map((is) => names.filter((name) => needsApproval(name) === is));
  return { toolset: { free: free ?? [], approval: approval ?? [], ...(more > 0 && { more }) } };
}

const LATE = Symbol('late');

/** Reads all fragments concurrently, with one deadline. A fragment that throws or is late is left out of the turn. */
async function readFragments(
  { clock, redaction, onWarning }: EngineDeps,
  { profile }: AgentRuntime,
  about: AboutTurn,
): Promise<ReadonlyMap<string, string | null>> {
  const fragments = profile.fragments?.live ?? [];
  const found = new Map<string, string | null>();
  const where = { kind: 'turn.started', author: agentAuthor(profile) } as const;
  const over = new AbortController();
  const late = clock.sleep(FRAGMENT_DEADLINE_MS, over.signal).then(() => LATE);
  const texts = await Promise.all(fragments.map(({ text }) => Promise.race([ask(text, about), late])));
  over.abort();
  for (const [index, { name }] of fragments.entries()) {
    const text = texts[index];
    if (typeof text === 'string') found.set(name, redaction?.text(text, where) ?? text.toWellFormed());
    else if (text === null) found.set(name, null);
    else onWarning(problemOf(text), `fragment ${name} of @${about.agent}`);
  }
  return found;
}

/** Calls a fragment. Never rejects, because a failure after the deadline would be unhandled. */
async function ask(text: DynamicText, about: AboutTurn): Promise<string | null | { failed: unknown }> {
  try {
    // Fragments written in JavaScript may return anything.
    const given: unknown = await text({ ...about });
    if (given === null || given === undefined || given === '') return null;
    return typeof given === 'string'
      ? given
      : { failed: new Error(`it returned ${typeof given}, not a string`) };
  } catch (error) {
    return { failed: error };
  }
}

function problemOf(outcome: symbol | { failed: unknown } | undefined): unknown {
  if (typeof outcome === 'object') return outcome.failed;
  return new Error(`it took longer than ${FRAGMENT_DEADLINE_MS} ms and is left out of this turn`);
}

function purposeOf(trigger: Event, tasks: TaskFold): string {
  if (trigger.kind === 'handoff') return TEXTS.live.task.handedOver(trigger.author.id);
  if (trigger.kind === 'delegation.opened') return TEXTS.live.task.given(trigger.author.id);
  if (trigger.kind === 'approval.decided') return TEXTS.live.task.decided;
  if (isTaskEnd(trigger)) return TEXTS.live.task.ended;
  if (trigger.kind === 'command') return TEXTS.live.task.again;
  const given = tasks.thread?.open.at(-1)?.delegator;
  return given === undefined ? TEXTS.live.task.answer : TEXTS.live.task.answerWithin(given);
}

/**
 * What others wait for in a conversation that was handed to the agent, which might otherwise take requested work for done. After
 * the handoff it is stated again when it changes.
 */
function openItem(inputs: readonly Event[], { view, tasks }: Folded, stated: StatedItems): LiveItems {
  if (stated.items['open'] === undefined && !inputs.some(({ kind }) => kind === 'handoff')) return {};
  const open = openTasks(tasks).filter(({ owner }) => owner !== view.agent);
  const lines = open.slice(0, MOST_NAMED).map((task) => `- ${openText(task)}`);
  if (open.length > MOST_NAMED) lines.push(`- and ${open.length - MOST_NAMED} more`);
  const text = lines.length > 0 ? `${TEXTS.live.open}\n${lines.join('\n')}` : null;
  return stateItem('open', text, stated);
}

function openText(task: Task): string {
  const { owner } = task;
  switch (task.kind) {
    case 'delegation':
      return TEXTS.live.openTask(task.body.assignee, owner, `${clipped(task.body.task)} (${task.id})`);
    case 'question':
      return TEXTS.live.openQuestion(owner, `${clipped(task.body.text)} (${task.id})`);
    case 'approval':
      return TEXTS.live.openApproval(owner, `${task.body.tool} ${clipped(task.body.args)} (${task.id})`);
  }
}

/** Tools with which an agent addresses others. Without one, the state of other agents is of no use to it. */
const REACHING = ['handoff', 'delegate', 'ask', 'follow_up'];

/** Maximum entries shown, because a server may withdraw a thousand tools at once. */
const MAX_SHOWN = 50;

/** Agents that cannot work here now, and tools whose calls may fail; null if there are none. */
function unavailableText(
  { profile, tools, awayServers }: AgentRuntime,
  { unavailable, away }: Pick<TaskFold, 'unavailable' | 'away'>,
): string | null {
  // An agent without tools uses neither tools nor other agents.
  if (tools.size === 0 && awayServers.length === 0) return null;
  const states = new Map<string, string>();
  if (REACHING.some((name) => tools.has(name))) {
    for (const [agent, { blocked }] of away) states.set(agent, blocked ? 'is blocked' : 'has left');
    for (const [agent, state] of unavailable)
      states.set(agent, state === 'failed' ? 'has failed' : `is ${state}`);
    states.delete(profile.id);
  }
  const agents = [...states].map(([agent, state]) => `@${agent} ${state}`);
  const troubles = [...tools.values()].flatMap((tool) => tool.trouble?.() ?? []);
  const servers = awayServers.map((server) => `the tool server ${server} is away, with its tools`);
  const all = [...agents.sort(), ...[...new Set([...troubles, ...servers])].sort()];
  const more = all.length > MAX_SHOWN ? [`and ${all.length - MAX_SHOWN} more`] : [];
  return all.length > 0 ? [...all.slice(0, MAX_SHOWN), ...more].join('; ') : null;
}

interface PersonFacts {
  /** The name of the person in headers of messages. */
  label: string;
  profile: PersonProfile | null;
  /** The person's local time of the event, such as `Wed 11:12 Europe/Berlin`; null if the zone is unknown. */
  localTime: string | null;
}

async function readPerson(
  { profileOf, trust }: Pick<EngineDeps, 'profileOf' | 'trust'>,
  { tenant }: ActorAddress,
  { people, upTo }: Pick<View, 'people' | 'upTo'>,
  trigger: Event,
): Promise<PersonFacts | null> {
  const { author, seq } = trigger;
  if (author.kind !== 'user' || trigger.kind === 'command') return null;
  const stored = (await profileOf?.(tenant, author.id)) ?? null;
  // Preferences of an untrusted person are left out, because they would read like orders.
  const isHeard = !isUntrusted(trust ?? null, trigger);
  const { preferences: _, ...rest } = stored ?? {};
  const profile = isHeard ? stored : rest;
  const localTime = profile?.timeZone === undefined ? null : timeIn(profile.timeZone, trigger.at);
  return { label: personLabel(people, author, Math.max(upTo, seq)), profile, localTime };
}

/** The items about the person. Only the name is stated while there is one person, because messages of several have names. */
function personItems(
  { label, profile }: PersonFacts,
  { people, upTo }: Pick<View, 'people' | 'upTo'>,
  stated: StatedItems,
): LiveItems {
  const known = [
    profile?.name === undefined || profile.name === label ? '' : `goes by ${profile.name}`,
    profile?.timeZone ?? '',
    profile?.preferences === undefined ? '' : `asks for: ${profile.preferences}`,
  ].filter(Boolean);
  const told = stateItem(`person ${label}`, known.length > 0 ? known.join('; ') : null, stated);
  const isAlone = !hasSeveralPeople(people, upTo);
  const isNamed = label.toLowerCase() !== 'user';
  return known.length === 0 && isAlone && isNamed ? { person: label, ...told } : told;
}

/**
 * Whom the reply goes to: the authors of the inputs, the newest first. Stated only if that is not just the last speaker, whom
 * the header of the message names. It holds for one turn.
 */
function targetItem(
  inputs: readonly Event[],
  { people, upTo, agent }: Pick<View, 'people' | 'upTo' | 'agent'>,
): LiveItems {
  const authors = inputs
    .filter(({ kind, author }) => kind === 'message' && author.kind !== 'system' && author.id !== agent)
    .map(({ author }) => author)
    .toReversed();
  const labels = authors.map((author) =>
    author.kind === 'agent' ? `@${author.id}` : personLabel(people, author, upTo),
  );
  const targets = [...new Set(labels)];
  const isLastSpeaker = targets.length === 1 && authors[0]?.id === inputs.at(-1)?.author.id;
  return targets.length === 0 || isLastSpeaker ? {} : { target: `this reply goes to ${targets.join(', ')}` };
}

/** The door of a person's message, if there is text about it or about the previous one. */
function channelItem(
  { kind, author, context }: Event,
  channels: ReadonlyMap<string, string>,
  { items }: StatedItems,
): LiveItems {
  const channel = context?.channel;
  if (kind !== 'message' || author.kind !== 'user' || channel === undefined) return {};
  const about = channels.get(channel);
  if (about !== undefined) return { channel: `${channel}: ${about}` };
  return items['channel'] === undefined ? {} : { channel };
}

function timeItem(at: number, person: PersonFacts | null): string {
  return person?.localTime ? `${minute(at)} (${person.localTime})` : minute(at);
}

/** The time in a zone; null if this machine does not know the zone. */
function timeIn(timeZone: string, at: number): string | null {
  try {
    const format = new Intl.DateTimeFormat('en-GB', {
      timeZone,
      weekday: 'short',
      hour: '2-digit',
      minute: '2-digit',
      hourCycle: 'h23',
    });
    const parts = new Map(format.formatToParts(at).map(({ type, value }) => [type, value]));
    return `${parts.get('weekday')} ${parts.get('hour')}:${parts.get('minute')} ${timeZone}`;
  } catch {
    // Thrown for unknown zones, and for times that no Date can hold.
    return null;
  }
}

/** Maximum tasks named in a live item. The others are counted. */
const MOST_NAMED = 12;
const MOST_TEXT = 80;
/** Number of newest events of a thread that are searched for the last words. */
const TAIL = 12;

/** The live items `delegations` and `todos`: open entries, one line each; null if there are none. */
async function openWorkItems(
  deps: Pick<EngineDeps, 'store'>,
  { tenant, agent }: ActorAddress,
  tasks: TaskFold,
): Promise<ReadonlyMap<string, string | null>> {
  const open = openTasks(tasks, agent);
  const lines = await Promise.all(
    open.slice(0, MOST_NAMED).map(async (task) => `- ${nameOf(task)}${await statusOf(deps, tenant, task)}`),
  );
  // Without a line, a task whose result is held back would seem not to have been given.
  const held = heldTasks(tasks, agent).slice(0, MOST_NAMED);
  lines.push(...held.map((task) => `- ${nameOf(task)} (ended: you are told with the others)`));
  if (open.length > MOST_NAMED) lines.push(`- and ${open.length - MOST_NAMED} more`);
  const todos = tasks.todos.get(agent)?.items ?? [];
  const left = todos.filter(({ status }) => status === 'pending' || status === 'active');
  return new Map([
    ['delegations', lines.length > 0 ? `you wait for ${open.length}:\n${lines.join('\n')}` : null],
    ['todos', left.length > 0 ? left.map(({ text, status }) => `- [${status}] ${text}`).join('\n') : null],
  ]);
}

function nameOf(task: Task): string {
  switch (task.kind) {
    case 'delegation':
      return `${task.id} @${task.body.assignee}: ${clipped(task.body.task)}`;
    case 'question':
      return `${task.id} people: ${clipped(task.body.text)}`;
    case 'approval':
      return `${task.id} approval of ${task.body.tool}`;
  }
}

async function statusOf(
  { store }: Pick<EngineDeps, 'store'>,
  tenant: ActorAddress['tenant'],
  task: Task,
): Promise<string> {
  if (task.kind !== 'delegation') return '';
  const log = { tenant, conversation: task.body.thread };
  const head = await store.head(log);
  if (head === 0) return ' (not begun)';
  const events = await store.read(log, { after: Math.max(0, head - TAIL), upTo: head, limit: TAIL });
  // The agent gets the result with the next event.
  if (events.some((event) => isEndOf(task.id, event))) return ' (ended: you are told next)';
  const words = events.findLast(
    (event) => event.author.id === task.body.assignee && (event.kind === 'message' || event.kind === 'step'),
  );
  const said = words?.kind === 'message' || words?.kind === 'step' ? clipped(words.body.content) : '';
  return said === '' ? ' (at work)' : ` (last: ${said})`;
}

function isEndOf(task: string, { kind, body }: Event): boolean {
  return kind === 'delegation.ended' && body.delegation === task;
}

function clipped(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  const points = Array.from(line.slice(0, 4 * MOST_TEXT));
  return points.length > MOST_TEXT ? `${points.slice(0, MOST_TEXT).join('')}…` : line;
}
