import { type Feature, journalKey, type ModelAnswer } from '../../attempt/turn-run.ts';
import { textsInMode, windowOf } from '../../../context/index.ts';
import { TroupeError } from '../../../base/errors.ts';
import {
  ACTOR_VERSION,
  agentAuthor,
  type Author,
  type BaselineBody,
  type CommandOf,
  type Event,
  type EventDraft,
  type EventOf,
  eventOf,
  isImported,
  NO_USAGE,
  type PinnedTurn,
  type Rerun,
  type RerunChange,
  runtimeId,
  type ToolCall,
  turnId,
  unknownName,
} from '../../../events/index.ts';
import type { ConversationKey } from '../../../store/store.ts';
import type { ConversationDeps } from '../../conversations/messages.ts';
import { makeFork, renamedEvent } from '../../conversations/fork-conversation.ts';
import type { AgentRuntime, AgentRegistry } from '../../actor/agent-runtime.ts';
import type { EngineDeps } from '../../actor/engine-deps.ts';
import { patchAtRest } from '../../actor/at-rest.ts';
import { readPages } from '../../log/read-log.ts';
import { readBaseline } from '../../turn/baseline.ts';
import { promptRulesOf } from '../../attempt/pinned-turn.ts';
import { readTurn, type LoggedTurn, callsOf, isSameCall, type LoggedCall } from '../../log/read-turn.ts';
import type { LiveActor } from '../../actor/registry.ts';
import type { RecordedCalls } from '../../attempt/feature-types.ts';
import { priceOf } from '../../../providers/prices.ts';

export const reruns: Feature = {
  open: () => ({ reruns: { begin: readRerun } }),
  commands: { rerun: rerunTurn },
};

/**
 * Runs an ended turn again, in a fork. Returns the event of the original that records the fork.
 *  R1  The fork has what the turn saw: the events up to its `upTo`, the inputs among them, and its baseline.
 *  R2  The turn is pinned with the values of the original, so that without a change the same prompt is sent.
 *  R3  It is pinned after the fork is complete, like a turn before its first attempt. After a crash or a restart it is
 *      resumed.
 * Throws `turn_unknown`, `agent_unknown`, `command_refused`, `event_invalid`.
 */
async function rerunTurn(
  conversations: ConversationDeps,
  tenant: ConversationKey['tenant'],
  command: CommandOf<'rerun'>,
  by: Author,
): Promise<Event> {
  const { deps } = conversations;
  const { turn, change, tools = 'recorded', as } = command;
  const rerun: Rerun = { turn, ...(change && { change }), tools };
  const original = await readTurn(deps.store, tenant, turn);
  const { log, agent, started } = original;
  const runtime = deps.agents.get(agent);
  if (!runtime) throw new TroupeError('agent_unknown', `there is no agent "${agent}"`, { agent });
  checkTurn(original, runtime, rerun);
  const frozen = await frozenFor(deps, original, runtime);
  const kept = keptSteps(original, rerun);
  const instructed =
    change?.kind === 'instructions' ? instruct(original, frozen, runtime, change.text) : null;
  if (instructed) await deps.store.putBody(tenant, instructed.hash, instructed.text, deps.clock.now());
  if (change?.kind === 'model') withModel(deps.agents, runtime, change);
  const place = { conversation: log.conversation, seq: started.body.upTo };
  const more = [...(await laterFacts(deps, original)), ...(instructed ? [instructed.draft] : [])];
  const again = { rerun, change: changeOf(original, change), more };
  const { event, target } = await makeFork(conversations, { tenant, place, as, by, again });
  const address = { ...target, agent };
  const id = turnId(address, original.number);
  await Promise.all(
    kept.map((answer, step) =>
      deps.store.journal(tenant, journalKey(id, step), JSON.stringify(answer), deps.clock.now()),
    ),
  );
  const pinned: PinnedTurn = {
    ...pinnedAs(original),
    id,
    baseline: instructed?.draft.id ?? started.body.baseline,
    ...(started.context && {
      context: { ...started.context, ...(instructed && { persona: instructed.hash }) },
    }),
    rerun: runtimeId('forked', place.seq),
  };
  await patchAtRest(deps, address, (held) => {
    // A repeated command finds the turn pinned or over.
    if (held && (held.turn || held.turnNo >= original.number)) return null;
    return { state: { turn: pinned, machineVersion: ACTOR_VERSION } };
  });
  // The sweeper makes up for a lost wake.
  await deps.router.wake(address).catch(() => undefined);
  return event;
}

function refused(original: LoggedTurn, why: string): TroupeError {
  const { turn } = original.started;
  return new TroupeError('command_refused', `turn ${turn} cannot be run again: ${why}`, { turn });
}

function checkTurn(original: LoggedTurn, runtime: AgentRuntime, { change, tools }: Rerun): void {
  if (!original.end) throw refused(original, 'it is running');
  if (isImported(original.started)) throw refused(original, 'it was imported');
  const { name, capabilities } = runtime.provider;
  if (!capabilities.sessionResumption) return;
  if (tools !== 'run')
    throw refused(original, `${name} acts by itself, unseen by Troupe: allow it with tools "run"`);
  if (change?.kind === 'toolResult')
    throw refused(
      original,
      `${name} keeps the steps of a turn to itself, so none can be taken from the record`,
    );
}

/** The baseline of the turn. Throws `command_refused` if its texts are not in the store, as after an import. */
async function frozenFor(
  deps: EngineDeps,
  original: LoggedTurn,
  runtime: AgentRuntime,
): Promise<BaselineBody> {
  const { log, agent, started } = original;
  try {
    return (await readBaseline(deps.store, { ...log, agent }, runtime, started.body.baseline)).body;
  } catch (error) {
    if (!(error instanceof TroupeError) || error.code !== 'store_corrupt') throw error;
    throw refused(original, 'what its agent was told is not in this store');
  }
}

interface Instructed {
  draft: EventDraft;
  hash: string;
  text: string;
}

/** The baseline of the original with another persona. The next turn freezes that of the definition again. */
function instruct(
  original: LoggedTurn,
  frozen: BaselineBody,
  runtime: AgentRuntime,
  text: string,
): Instructed {
  const mode = original.started.context?.mode ?? null;
  if (mode === 'chat') throw refused(original, 'it was in chat mode, in which an agent has no instructions');
  const persona = textsInMode(runtime.instructed(text), mode).find(({ name }) => name === 'persona');
  if (!persona) throw new TroupeError('internal', 'the agent has no persona');
  const { hash, tokens } = persona;
  const epoch = frozen.epoch + 1;
  const layers = frozen.layers.map((layer) =>
    layer.name === 'persona' ? { name: layer.name, hash, tokens: tokens() } : layer,
  );
  const { provider, model } = frozen;
  const body = { epoch, provider, model, layers, reason: 'other instructions for a turn that is run again' };
  return {
    draft: {
      id: runtimeId('baseline', original.agent, epoch),
      author: agentAuthor(runtime.profile),
      to: [],
      kind: 'baseline',
      body,
    },
    hash,
    text: persona.text,
  };
}

/** The events after the original's inputs that its first step already used: the agent's joining and its baseline. */
async function laterFacts(deps: EngineDeps, { log, agent, started }: LoggedTurn): Promise<EventDraft[]> {
  const { upTo, baseline } = started.body;
  const same = { from: log.conversation, to: log.conversation };
  const drafts: EventDraft[] = [];
  for await (const page of readPages(deps.store, log, { after: upTo, upTo: started.seq })) {
    for (const event of page) {
      const isJoining =
        event.kind === 'membership.changed' && event.body.change === 'joined' && event.body.agent === agent;
      if (isJoining || event.id === baseline) drafts.push(renamedEvent(event, same));
    }
  }
  return drafts;
}

type ChangeDraft = (draft: EventDraft, seq: number) => EventDraft;

/** The requested change. Throws `command_refused` if no message began the turn, and `event_invalid` for an unknown call. */
function changeOf(original: LoggedTurn, change: RerunChange | undefined): ChangeDraft {
  if (change?.kind !== 'message') return (draft) => draft;
  const message = original.inputs.findLast(({ kind }) => kind === 'message');
  if (!message) throw refused(original, 'no message began it, so there is none to change');
  const { content } = change;
  return (draft, seq) =>
    seq === message.seq && draft.kind === 'message' ? { ...draft, body: { ...draft.body, content } } : draft;
}

/** The recorded answers that are used again: up to the call whose result is changed. */
function keptSteps(original: LoggedTurn, { change }: Rerun): ModelAnswer[] {
  if (change?.kind !== 'toolResult') return [];
  const calls = callsOf(original).filter(
    ({ result }) => result?.outcome === 'done' || result?.outcome === 'failed',
  );
  const found = calls.find(({ call }) => call.id === change.call);
  if (!found) {
    const known = calls.map(({ call }) => call.id);
    const message = unknownName(`the turn has no result of a call "${change.call}"`, change.call, known);
    throw new TroupeError('event_invalid', message, { path: 'change.call' });
  }
  return stepsOf(original)
    .filter(({ body }) => body.index <= found.step)
    .map(({ body: { index, content, calls: asked, reasoning } }) => ({
      text: content,
      calls: asked,
      ...(reasoning && { reasoning }),
      stop: 'calls',
      usage: NO_USAGE,
      ...sentBack(original, index),
      kept: true,
    }));
}

/** Why the model was asked again after this step. */
function sentBack({ own, started }: LoggedTurn, step: number): Pick<ModelAnswer, 'fault'> {
  const note = own.find(({ id }) => id === runtimeId(started.turn ?? '', `again:${step}`));
  if (note?.kind !== 'injection') return {};
  const { content } = note.body;
  return { fault: { note: content, code: 'provider_invalid_reply', message: content } };
}

function stepsOf({ own }: LoggedTurn): EventOf<'step'>[] {
  return own.flatMap((event) => eventOf(event, 'step') ?? []);
}

function pinnedAs(original: LoggedTurn): Omit<PinnedTurn, 'id' | 'baseline' | 'rerun'> {
  const { started, inputs } = original;
  const { upTo, live, join } = started.body;
  const approved = approvedIn(original);
  return {
    upTo,
    inputs: started.body.inputs,
    // Its first attempt is counted when it is resumed.
    attempt: 0,
    live,
    join,
    hop: Math.max(0, ...inputs.map(({ hop = 0 }) => hop)),
    at: inputs.at(-1)?.at ?? started.at,
    ...promptRulesOf(started.body),
    ...(approved && { approved }),
    // The turn runs even if the task on which the original worked is over.
    byPerson: true,
  };
}

/** The approved calls with which the turn began; null without any. */
function approvedIn(original: LoggedTurn): ToolCall[] | null {
  const isApproved = original.inputs.some(
    (event) => event.kind === 'approval.decided' && event.body.outcome === 'approved',
  );
  return isApproved ? (stepsOf(original)[0]?.body.calls ?? null) : null;
}

interface Start {
  deps: EngineDeps;
  live: Pick<LiveActor, 'address'>;
  runtime: AgentRuntime;
  turn: Pick<PinnedTurn, 'rerun'>;
}

/** The values that differ for a turn that repeats another; null for any other turn. Read again after a crash. */
async function readRerun({
  deps,
  live,
  runtime,
  turn,
}: Start): Promise<{ runtime: AgentRuntime; recorded: RecordedCalls } | null> {
  if (turn.rerun === undefined) return null;
  const event = await deps.store.readById(live.address, turn.rerun);
  const rerun: Rerun | undefined = event?.kind === 'command' ? event.body.rerun : undefined;
  if (!rerun) throw new TroupeError('store_corrupt', `${turn.rerun} is not in the store`, { id: turn.rerun });
  const { change } = rerun;
  // Without the original no results are known.
  const original = await readTurn(deps.store, live.address.tenant, rerun.turn).catch((error: unknown) => {
    if (error instanceof TroupeError && error.code === 'turn_unknown') return null;
    throw error;
  });
  return {
    runtime: change?.kind === 'model' ? withModel(deps.agents, runtime, change) : runtime,
    recorded: recordedCalls(deps, rerun, original),
  };
}

type ModelChange = Extract<RerunChange, { kind: 'model' }>;

/**
 * The agent with another model. The settings of the provider come from an agent that uses it, if possible one with the same
 * model. Throws `event_invalid`.
 */
function withModel(agents: AgentRegistry, runtime: AgentRuntime, change: ModelChange): AgentRuntime {
  const { model, provider = runtime.profile.provider } = change;
  const having = [...agents.values()].filter(({ profile }) => profile.provider === provider);
  const same = having.find(({ profile }) => profile.model === model);
  const like = same ?? (provider === runtime.profile.provider ? runtime : having[0]);
  if (!like) {
    const known = [...new Set([...agents.values()].map(({ profile }) => profile.provider))];
    const message = unknownName(`no agent here has the provider "${provider}"`, provider, known);
    throw new TroupeError('event_invalid', message, { path: 'change.provider' });
  }
  if (runtime.profile.peers === 'system' && !like.provider.capabilities.interleavedSystem) {
    const message = `@${runtime.profile.id} has other agents' words in system messages, which ${provider} does not take between others`;
    throw new TroupeError('event_invalid', message, { path: 'change.provider' });
  }
  const contextWindow =
    same?.profile.contextWindow ?? windowOf(model)?.window ?? runtime.profile.contextWindow;
  return {
    ...runtime,
    provider: like.provider,
    price: same ? same.price : priceOf(model),
    profile: { ...runtime.profile, provider, model, contextWindow },
  };
}

const NOT_RUN =
  '[not run: this turn is run again from its record, in which there is no result of this call with these arguments. Go on without it.]';

/** The recorded results of calls. `original` null: the turn is no longer in the store. */
function recordedCalls(
  { store }: Pick<EngineDeps, 'store'>,
  { change, tools }: Rerun,
  original: LoggedTurn | null,
): RecordedCalls {
  const known = original ? callsOf(original).filter(hasEnded) : [];
  const changed = change?.kind === 'toolResult' ? known.find(({ call }) => call.id === change.call) : null;
  const last = original && endedByCalls(original) ? Math.max(...known.map(({ step }) => step)) : -1;
  return async (call) => {
    const same = known.filter((each) => isSameCall(each.call, call));
    const found = same.find((each) => each.call.id === call.id) ?? same.at(-1);
    if (!found?.result) return tools === 'run' ? null : { outcome: 'failed', text: NOT_RUN, ends: false };
    if (change?.kind === 'toolResult' && changed && isSameCall(changed.call, call))
      return { outcome: 'done', text: change.result, ends: false };
    const { outcome, content, artifact } = found.result;
    const whole = artifact && original ? await store.readArtifact(original.log, artifact) : null;
    return { outcome, text: whole ?? content, ends: found.step === last };
  };
}

/** Whether a call has a result. Calls that waited or were lost have none. */
function hasEnded({ result }: LoggedCall): boolean {
  return result?.outcome === 'done' || result?.outcome === 'failed';
}

/** Whether a call ended the turn: a handoff, or a question whose answer was awaited. */
function endedByCalls({ own, end }: LoggedTurn): boolean {
  return end?.kind === 'turn.done' && !own.some(({ kind }) => kind === 'message');
}
