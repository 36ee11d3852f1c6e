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
} from '../../context/index.ts';
import {
  type ActorAddress,
  agentAuthor,
  type Event,
  type EventContext,
  type LiveItems,
  MAX_TOOLSET,
  type ToolSpec,
} from '../../events/index.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import type { FrozenBaseline, AgentRuntime } from '../engine/agent-runtime.ts';
import type { Folded } from '../log/read-view.ts';
import type { TurnDeps } from './turn-run.ts';
import {
  channelItem,
  type PersonFacts,
  personItems,
  readPerson,
  targetItem,
  timeItem,
} from './person-facts.ts';
import { purposeOf } from './purpose.ts';
import { unavailableText } from './unavailable.ts';
import { openWorkItems } from '../tasks/task-items.ts';
import { type Directive, directiveOf } from '../../machines/directions.ts';

/** Time after which the turn goes on without a fragment, ms. */
const FRAGMENT_DEADLINE_MS = 1_000;

/** Facts that are read once, when a turn is pinned, and then recorded with the turn. */
export interface TurnFacts {
  directive: Directive | null;
  /** By name, in order. Null: empty now. A failed fragment is missing. */
  fragments: ReadonlyMap<string, string | null>;
  memories: Memories;
  /** The agent's open tasks and todos, by the names of their live items. */
  workItems: ReadonlyMap<string, string | null>;
  /** Null: the turn answers no person. */
  person: PersonFacts | null;
}

export const NO_FACTS: TurnFacts = {
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
    readFragments(deps, runtime, about),
    runtime.retrieval && view.floor > 0
      ? (deps.features.memory?.retrieve(deps, { address, runtime, view, trigger }) ?? NO_MEMORIES)
      : NO_MEMORIES,
    hasWork(tasks) ? openWorkItems(deps, address, tasks) : NO_WORK,
    readPerson(deps, address, view, trigger),
  ]);
  return { directive, fragments, memories, workItems, person };
}

/** The live items at the start of a turn, changes only. The time is that of the trigger, never of the clock. */
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
    ...modeItems(view.directions.mode, directive),
    ...phaseItem(view.directions.phase, runtime.orchestrates),
    ...channelItem(trigger, runtime.channels, stated),
    ...stateItem('unavailable', unavailableText(runtime, tasks), stated),
    ...(roster !== null && { roster }),
  };
  for (const [name, text] of [...workItems, ...fragments])
    Object.assign(facts, stateItem(name, text, stated));
  return {
    ...liveDelta(facts, stated),
    ...targetItem(inputs, view),
    ...(memories.seqs.length > 0 && memoryItem(memories)),
  };
}

const FROZEN_LAYERS: readonly string[] = ['rules', 'persona', 'tools', 'environment'];

const NO_WORK: ReadonlyMap<string, string | null> = new Map([
  ['delegations', null],
  ['todos', null],
]);

function hasWork({ tasks, todos }: Folded['tasks']): boolean {
  return tasks.size > 0 || todos.size > 0;
}

/** Hashes of what is injected into the turn: the frozen layers and the present fragments. */
export function contextOf(
  { body, tools }: FrozenBaseline,
  { directions: { mode } }: View,
  { directive, fragments, memories }: TurnFacts,
  granted: AgentRuntime['tools'],
): EventContext {
  const layers = body.layers.filter(({ name }) => FROZEN_LAYERS.includes(name));
  const given = [...fragments].flatMap(([name, text]) => (text === null ? [] : [[name, hashText(text)]]));
  return {
    ...Object.fromEntries(layers.map(({ name, hash }) => [name, hash])),
    ...toolsetOf(tools, granted),
    ...(mode !== null && { mode }),
    ...(directive && { run: directive.run }),
    ...(given.length > 0 && { fragments: Object.fromEntries(given) }),
    ...(memories.seqs.length > 0 && { memories: memories.seqs }),
  };
}

function toolsetOf(
  tools: readonly ToolSpec[],
  granted: AgentRuntime['tools'],
): Pick<EventContext, 'toolset'> {
  if (tools.length === 0) return {};
  const names = tools.slice(0, MAX_TOOLSET).map(({ name }) => name);
  const needsApproval = (name: string) => Boolean(granted.get(name)?.needsApproval);
  const more = tools.length - names.length;
  const [approval, free] = [true, false].map((is) => names.filter((name) => needsApproval(name) === is));
  return { toolset: { free: free ?? [], approval: approval ?? [], ...(more > 0 && { more }) } };
}

const LATE = Symbol('late');

/** Reads all fragments at once, with one deadline. A fragment that throws or is late is left out of the turn. */
async function readFragments(
  { clock, redaction, onWarning }: EngineDeps,
  { profile }: AgentRuntime,
  about: AboutTurn,
): Promise<ReadonlyMap<string, string | null>> {
  const fragments = profile.fragments?.live ?? [];
  const found = new Map<string, string | null>();
  const where = { kind: 'turn.started', author: agentAuthor(profile) } as const;
  if (fragments.length === 0) return found;
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

/** Never rejects, because a failure after the deadline would be unhandled. */
async function ask(text: DynamicText, about: AboutTurn): Promise<string | null | { failed: unknown }> {
  try {
    // Fragments in JavaScript may return anything.
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
