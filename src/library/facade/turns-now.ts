import type { EngineDeps } from '../../actors/actor/engine-deps.ts';
import { type ActorAddress, addressKey, runtimeId, type TenantId } from '../../events/index.ts';
import {
  type Holder,
  MOST_HOLDERS,
  type RunningLine,
  type WaitCause,
  type WaitingLine,
  waitWords,
} from '../inspect/turn-queue.ts';
import type { AdmissionLoad, Refused } from '../../queue/admission.ts';
import type { WaitingWake } from '../../queue/router.ts';
import type { HeardTurn } from './live-book.ts';

/** Who runs and who waits, over all processes. */
interface TurnsNow {
  caps: AdmissionLoad['caps'];
  /** Running turns of the tenant, the oldest first. */
  running: RunningLine[];
  /** Waiting agents of the tenant, the longest first. */
  waiting: WaitingLine[];
  /** The same of all tenants, as numbers. */
  all: { running: (string | null)[]; waiting: { provider: string | null; since: number }[] };
  /** Number of waiting agents, if more wait than were looked at. */
  more: number;
}

/** Wakes of the queue that are looked at. */
const MOST_WAKES = 300;
/** Records that are read for turns of which nothing was heard. */
const MOST_READ = 100;

/**
 * Three sources, each with a part: the notes of running turns say what they do, admission says who holds slots and who was
 * refused, and the queue says who waits. A process that begins to listen has missed the notes of turns that run already,
 * so those are read from their records.
 */
export async function turnsNow(
  deps: EngineDeps,
  tenant: TenantId,
  heard: readonly HeardTurn[],
): Promise<TurnsNow> {
  const { admission, router, agents, clock } = deps;
  const [load, wakes, depth] = await Promise.all([
    admission.load(tenant),
    router.waiting(MOST_WAKES).catch(() => []),
    router.depth().catch(() => null),
  ]);
  const providerOf = (agent: HeardTurn['address']['agent']) => agents.get(agent)?.profile.provider ?? null;
  const known = new Map(heard.map((turn) => [addressKey(turn.address), turn]));
  const unheard = load.held.filter(({ address }) => !known.has(addressKey(address)));
  const told = heard
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address: { conversation, agent }, turn, since, doing }) => ({
      conversation,
      agent,
      turn,
      since,
      provider: providerOf(agent),
      doing: doing.kind,
    }));
  const read = await readTurns(
    deps,
    unheard.filter(({ address }) => address.tenant === tenant),
  );
  const running = [...told, ...read].toSorted((a, b) => a.since - b.since);
  const allRunning = [
    ...heard.map(({ address }) => providerOf(address.agent)),
    ...unheard.map(({ provider }) => provider),
  ];
  const waits = waitsOf(
    load,
    wakes,
    new Set([...known.keys(), ...load.held.map(({ address }) => addressKey(address))]),
  );
  const now = clock.now();
  const waiting = waits
    .filter(({ address }) => address.tenant === tenant)
    .map(({ address, provider = providerOf(address.agent), since, kind }) =>
      lineOf(
        { address, provider, since, kind, turn: known.get(addressKey(address))?.turn ?? null },
        { load, running, allRunning, now },
      ),
    );
  return {
    caps: load.caps,
    running,
    waiting,
    all: {
      running: allRunning,
      waiting: waits.map(({ address, provider = providerOf(address.agent), since }) => ({ provider, since })),
    },
    more: wakes.length < MOST_WAKES ? 0 : Math.max(0, (depth?.waiting ?? 0) - waits.length),
  };
}

/** Without the turns of processes that were killed: those told nobody that their turns are over. */
export async function liveTurns(
  { store, clock, limits }: EngineDeps,
  heard: readonly HeardTurn[],
): Promise<HeardTurn[]> {
  const old = clock.now() - limits.leaseMs;
  const doubtful = limits.soleOwner ? [] : heard.filter(({ doing }) => doing.since < old).slice(0, MOST_READ);
  const over = new Set<HeardTurn>();
  await Promise.all(
    doubtful.map(async (turn) => {
      const record = await store.readActor(turn.address).catch(() => null);
      if (record?.turn?.id !== turn.turn) over.add(turn);
    }),
  );
  return heard.filter((turn) => !over.has(turn));
}

interface Wait {
  address: ActorAddress;
  provider?: string;
  since: number;
  kind: Refused['for'] | 'process' | 'lease';
}

/** One wait per actor: the refusal says why, the wake since when. The wake of an actor at work is no wait. */
function waitsOf(
  { waiting }: AdmissionLoad,
  wakes: readonly WaitingWake[],
  atWork: ReadonlySet<string>,
): Wait[] {
  const waits = new Map<string, Wait>();
  for (const { address, provider, since, for: kind } of waiting)
    waits.set(addressKey(address), { address, provider, since, kind });
  for (const { address, since, isHeldBack } of wakes) {
    const key = addressKey(address);
    if (atWork.has(key)) continue;
    const refused = waits.get(key);
    if (refused) refused.since = Math.min(refused.since, since);
    else waits.set(key, { address, since, kind: isHeldBack ? 'lease' : 'process' });
  }
  return [...waits.values()].toSorted((a, b) => a.since - b.since);
}

interface Around {
  load: AdmissionLoad;
  running: readonly RunningLine[];
  allRunning: readonly (string | null)[];
  now: number;
}

function lineOf(
  wait: Pick<WaitingLine, 'turn' | 'provider'> & Omit<Wait, 'provider'>,
  { load, running, allRunning, now }: Around,
): WaitingLine {
  const { address, provider, since, kind, turn } = wait;
  const { tenant, conversation, agent } = address;
  const cause = causeOf(kind, tenant, load);
  const holds = (line: RunningLine) =>
    cause === 'tenant_slot' || (cause === 'provider_slot' && line.provider === provider);
  const heldBy = running
    .filter(holds)
    .slice(0, MOST_HOLDERS)
    .map(({ conversation: where, agent: who, turn: id, since: began }): Holder => {
      return { conversation: where, agent: who, turn: id, since: began };
    });
  const holders =
    cause === 'provider_slot'
      ? allRunning.filter((each) => each === provider).length
      : running.filter(holds).length;
  const line = { conversation, agent, turn, provider, for: cause, since, heldBy, holders };
  return { ...line, words: waitWords(line, now) };
}

function causeOf(kind: Wait['kind'], tenant: TenantId, { caps, held }: AdmissionLoad): WaitCause {
  if (kind === 'call') return 'call_rate';
  if (kind !== 'slot') return kind;
  const own = held.filter(({ address }) => address.tenant === tenant).length;
  return caps.turnsPerTenant !== undefined && own >= caps.turnsPerTenant ? 'tenant_slot' : 'provider_slot';
}

async function readTurns(
  { store }: EngineDeps,
  slots: readonly AdmissionLoad['held'][number][],
): Promise<RunningLine[]> {
  const lines = await Promise.all(
    slots.slice(0, MOST_READ).map(async ({ address, provider }): Promise<RunningLine[]> => {
      const turn = (await store.readActor(address))?.turn;
      if (!turn) return [];
      const started = await store.readById(address, runtimeId(turn.id, 'started'));
      const { conversation, agent } = address;
      const since = started?.at ?? turn.at ?? 0;
      return [{ conversation, agent, turn: turn.id, since, provider, doing: null }];
    }),
  );
  return lines.flat();
}
