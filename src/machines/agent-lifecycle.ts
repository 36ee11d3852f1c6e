import { getNextTransitions, initialTransition, setup, type SnapshotFrom, transition } from 'xstate';
import { ACTOR_VERSION } from '../events/index.ts';
import * as z from 'zod';
import { TroupeError } from '../base/errors.ts';

/**
 * The turns of one agent in one conversation, as decisions only. `availability.ts` decides whether it takes turns.
 *
 * Owns which effect comes next. Does not own the effects: each working state carries one tag, the name of the effect
 * that `src/actors` performs there, and the outcome of the effect comes back as an event. There are no invokes and no
 * `after`: on a restore XState would run the former again and lose the latter. There is no context: an event carries
 * everything that its decision needs. So every decision is asked of XState once, at the start of a process (7 ms), and
 * looked up from then on: a lookup takes 0.04 µs, XState 26 µs.
 *  M1  A state has at most one effect tag, and every effect state accepts ABORTED or is `committing`.
 *  M2  From every working state `committing` is reachable; from `committing` only `idle` and `waiting`.
 */
export const AGENT_MACHINE_VERSION = ACTOR_VERSION;

export const EFFECTS = [
  'assemble',
  'compact',
  'callModel',
  'runCalls',
  'supervise',
  'commit',
  'backOff',
] as const;
export type EffectName = (typeof EFFECTS)[number];

/** What an agent at rest waits for. The log determines the wait, so the agent can take other turns meanwhile. */
export type WaitsFor = 'delegation' | 'approval' | 'answer';

export type AgentEvent =
  | { type: 'PINNED' }
  | { type: 'PROMPT_READY' }
  | { type: 'OVER_BUDGET' }
  | { type: 'COMPACTED' }
  | { type: 'OVERFLOWED' }
  | { type: 'MODEL_REPLIED' }
  | { type: 'MODEL_CALLED' }
  | { type: 'MODEL_FAILED'; failed: FailedTry }
  | { type: 'RETRY_DUE' }
  | { type: 'CALLS_DONE' }
  | { type: 'CALLS_ENDED_TURN' }
  | { type: 'ACCEPTED' }
  | { type: 'CORRECTED' }
  | { type: 'REFUSED' }
  | { type: 'ABORTED' }
  | { type: 'COMMITTED'; waits: WaitsFor | null };

/** `answered`: number of tries of this call that a server answered with a failure. `isAway`: no server answered this try. */
interface FailedTry {
  retryable: boolean;
  isAway: boolean;
  answered: number;
}

/** Most tries of one model call that a server answers, including the first. */
export const MAX_TRIES = 4;

function mayRetry({ retryable, isAway, answered }: FailedTry): boolean {
  return retryable && (isAway || answered < MAX_TRIES);
}

export const agentLifecycle = setup({
  types: { events: {} as AgentEvent },
  guards: {
    mayRetry: ({ event }) => event.type === 'MODEL_FAILED' && mayRetry(event.failed),
    waitsForDelegation: ({ event }) => event.type === 'COMMITTED' && event.waits === 'delegation',
    waitsForApproval: ({ event }) => event.type === 'COMMITTED' && event.waits === 'approval',
    waitsForAnswer: ({ event }) => event.type === 'COMMITTED' && event.waits === 'answer',
  },
}).createMachine({
  id: 'agent',
  initial: 'idle',
  states: {
    idle: {
      on: {
        PINNED: 'working',
      },
    },
    working: {
      initial: 'assembling',
      on: { ABORTED: '.committing', REFUSED: '.committing' },
      states: {
        assembling: {
          tags: 'assemble',
          on: { PROMPT_READY: 'streaming', OVER_BUDGET: 'compacting' },
        },
        compacting: { tags: 'compact', on: { COMPACTED: 'assembling' } },
        streaming: {
          tags: 'callModel',
          on: {
            MODEL_REPLIED: 'supervising',
            MODEL_CALLED: 'acting',
            OVERFLOWED: 'compacting',
            MODEL_FAILED: [{ guard: 'mayRetry', target: '#agent.backoff' }, { target: 'committing' }],
          },
        },
        acting: {
          tags: 'runCalls',
          on: {
            CALLS_DONE: 'assembling',
            CALLS_ENDED_TURN: 'committing',
          },
        },
        supervising: { tags: 'supervise', on: { ACCEPTED: 'committing', CORRECTED: 'assembling' } },
        committing: {
          tags: 'commit',
          on: {
            COMMITTED: [
              { guard: 'waitsForApproval', target: '#agent.waiting.approval' },
              { guard: 'waitsForAnswer', target: '#agent.waiting.answer' },
              { guard: 'waitsForDelegation', target: '#agent.waiting.delegation' },
              { target: '#agent.idle' },
            ],
          },
        },
      },
    },
    backoff: {
      tags: 'backOff',
      on: { RETRY_DUE: 'working.streaming', ABORTED: 'working.committing' },
    },
    waiting: {
      initial: 'answer',
      on: {
        PINNED: 'working',
      },
      states: { delegation: {}, approval: {}, answer: {} },
    },
  },
});

const AtRest = z.union([
  z.literal('idle'),
  z.strictObject({ waiting: z.enum(['delegation', 'approval', 'answer']) }),
]);
/** Versions up to 5 of the machine stored counts that nothing reads. */
const Counts = z.strictObject({
  turns: z.int().nonnegative(),
  steps: z.literal(0),
  tries: z.literal(0),
});
/**
 * The persisted part of an agent: the value of a state at rest. XState's own snapshot is never stored: restoring one
 * revives children and references from whatever JSON it holds.
 */
const SavedAgent = z.strictObject({ value: AtRest, context: Counts.optional() });

export type AgentSnapshot = SnapshotFrom<typeof agentLifecycle>;

/** Examples of each type of event. If guards look into an event, one example for each outcome. */
const EVENTS: { readonly [T in AgentEvent['type']]: readonly Extract<AgentEvent, { type: T }>[] } = {
  PINNED: [{ type: 'PINNED' }],
  PROMPT_READY: [{ type: 'PROMPT_READY' }],
  OVER_BUDGET: [{ type: 'OVER_BUDGET' }],
  COMPACTED: [{ type: 'COMPACTED' }],
  OVERFLOWED: [{ type: 'OVERFLOWED' }],
  MODEL_REPLIED: [{ type: 'MODEL_REPLIED' }],
  MODEL_CALLED: [{ type: 'MODEL_CALLED' }],
  MODEL_FAILED: [
    { type: 'MODEL_FAILED', failed: { retryable: true, isAway: false, answered: 1 } },
    { type: 'MODEL_FAILED', failed: { retryable: false, isAway: false, answered: 1 } },
  ],
  RETRY_DUE: [{ type: 'RETRY_DUE' }],
  CALLS_DONE: [{ type: 'CALLS_DONE' }],
  CALLS_ENDED_TURN: [{ type: 'CALLS_ENDED_TURN' }],
  ACCEPTED: [{ type: 'ACCEPTED' }],
  CORRECTED: [{ type: 'CORRECTED' }],
  REFUSED: [{ type: 'REFUSED' }],
  ABORTED: [{ type: 'ABORTED' }],
  COMMITTED: [
    { type: 'COMMITTED', waits: null },
    { type: 'COMMITTED', waits: 'delegation' },
    { type: 'COMMITTED', waits: 'approval' },
    { type: 'COMMITTED', waits: 'answer' },
  ],
};

/** What guards see of an event. Events with the same outcome lead to the same decision. */
function outcomeOf(event: AgentEvent): string {
  if (event.type === 'COMMITTED') return event.waits ?? event.type;
  if (event.type === 'MODEL_FAILED') return mayRetry(event.failed) ? event.type : 'GIVEN_UP';
  return event.type;
}

interface Step {
  event: AgentEvent;
  next: AgentSnapshot;
}

/**
 * Every decision, asked of the statechart once: each reachable state, and where each outcome leads. A snapshot has no
 * context, so a state has one snapshot.
 */
function decideAll(): Map<AgentSnapshot, Map<string, Step>> {
  const steps = new Map<AgentSnapshot, Map<string, Step>>();
  const states = [initialTransition(agentLifecycle)[0]];
  for (const state of states) {
    const own = new Map<string, Step>();
    const accepted = new Set(getNextTransitions(state).map(({ eventType }) => eventType));
    for (const event of [...accepted].flatMap(
      (type): readonly AgentEvent[] => EVENTS[type as AgentEvent['type']],
    )) {
      const [reached] = transition(agentLifecycle, state, event);
      const known = states.find(({ value }) => pathOf(value) === pathOf(reached.value));
      if (!known) states.push(reached);
      const next = known ?? reached;
      own.set(outcomeOf(event), { event, next });
    }
    steps.set(state, own);
  }
  return steps;
}

/** Exported for tests that watch what is asked of the machine. */
export const AGENT_STEPS: ReadonlyMap<AgentSnapshot, ReadonlyMap<string, Step>> = decideAll();

export function newAgent(): AgentSnapshot {
  const [initial] = AGENT_STEPS.keys();
  return initial!;
}

/** Throws `internal` for an event that the state does not accept: the effect then does not match the machine. */
export function nextAgent(snapshot: AgentSnapshot, event: AgentEvent): AgentSnapshot {
  const step = AGENT_STEPS.get(snapshot)?.get(outcomeOf(event));
  if (step) return step.next;
  throw new TroupeError('internal', `${event.type} is not accepted in ${pathOf(snapshot.value)}`);
}

/** For a machine at rest only: a turn in progress is restored from its pinned turn. */
export function saveAgent({ value }: AgentSnapshot): string {
  return JSON.stringify({ value });
}

/** Whether the machine is at rest, so that a turn may begin: in a state without an effect. */
export function isReady({ tags }: AgentSnapshot): boolean {
  return tags.size === 0;
}

/** Throws `actor_corrupt`, and `actor_newer` for a snapshot of a newer machine, which is left unchanged. */
export function restoreAgent(saved: string | null, version: number): AgentSnapshot {
  if (saved === null) return newAgent();
  if (version > AGENT_MACHINE_VERSION) {
    throw new TroupeError(
      'actor_newer',
      `the snapshot was written by machine version ${version}; this process knows ${AGENT_MACHINE_VERSION}. Upgrade it.`,
      { version, supported: AGENT_MACHINE_VERSION },
    );
  }
  const parsed = SavedAgent.safeParse(parseJson(saved));
  if (!parsed.success) {
    throw new TroupeError('actor_corrupt', `the snapshot cannot be read: ${z.prettifyError(parsed.error)}`);
  }
  const { value } = parsed.data;
  return [...AGENT_STEPS.keys()].find((state) => state.matches(value))!;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined; // refused by the schema, with its own message
  }
}

/** `{working: 'streaming'}` as `working.streaming`. States are nested once. */
export function pathOf(value: AgentSnapshot['value']): string {
  if (typeof value === 'string') return value;
  const [[parent, child] = []] = Object.entries(value);
  return `${parent}.${child}`;
}
