import { textsInMode } from '../../context/index.ts';
import { TroupeError } from '../../base/errors.ts';
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
} from '../../events/index.ts';
import type { ConversationKey } from '../../store/store.ts';
import type { ConversationDeps } from '../conversations/conversation-deps.ts';
import { makeFork } from '../conversations/fork-conversation.ts';
import { renamedEvent } from '../conversations/fork-past.ts';
import type { AgentRuntime } from '../engine/agent-runtime.ts';
import type { EngineDeps } from '../engine/engine-deps.ts';
import { patchAtRest } from '../engine/patch-at-rest.ts';
import { readPages } from '../log/read-pages.ts';
import { readBaseline } from '../turn/baseline.ts';
import { promptRulesOf } from '../turn/pinned-turn.ts';
import { journalKey, type ModelAnswer } from '../turn/turn-run.ts';
import { withModel } from './other-model.ts';
import { callsOf, type LoggedTurn, readTurn } from '../log/read-turn.ts';

/**
 * Runs a turn that has ended again, in a fork. Returns the event of the original that records the fork.
 *  R1  The fork has what the turn saw: the events up to its `upTo`, the inputs among them, and its baseline.
 *  R2  The turn is pinned with what the original was pinned with, so that without a change the same prompt is sent.
 *  R3  It is pinned after the fork is whole, as a turn that was left before its first attempt: a crash after that, or a
 *      restart, resumes it.
 * Throws `turn_unknown`, `agent_unknown`, `command_refused`, `event_invalid`.
 */
export async function rerunTurn(
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
    // Repeating the command finds the turn begun or over.
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

/** Refused if the texts of its baseline are not in the store, as of an imported conversation. */
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
  /** Hash of the persona. */
  hash: string;
  text: string;
}

/** The baseline of the original with another persona. The next turn freezes the definition's again. */
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

/** The events that the original's first step found beyond what its turn saw: the agent's joining and its baseline. */
async function laterFacts(deps: EngineDeps, { log, agent, started }: LoggedTurn): Promise<EventDraft[]> {
  const { upTo, baseline } = started.body;
  const same = { from: log.conversation, to: log.conversation };
  const drafts: EventDraft[] = [];
  for await (const page of readPages(deps.store, log, { after: upTo, upTo: started.seq })) {
    for (const event of page) {
      const isJoining = event.kind === 'joined' && event.body.agent === agent;
      if (isJoining || event.id === baseline) drafts.push(renamedEvent(event, same));
    }
  }
  return drafts;
}

type ChangeDraft = (draft: EventDraft, seq: number) => EventDraft;

/** Throws `command_refused` if no message began the turn, and `event_invalid` for an unknown call. */
function changeOf(original: LoggedTurn, change: RerunChange | undefined): ChangeDraft {
  if (change?.kind !== 'message') return (draft) => draft;
  const message = original.inputs.findLast(({ kind }) => kind === 'message');
  if (!message) throw refused(original, 'no message began it, so there is none to change');
  const { content } = change;
  return (draft, seq) =>
    seq === message.seq && draft.kind === 'message' ? { ...draft, body: { ...draft.body, content } } : draft;
}

/** The answers of the steps that are taken from the record: up to the call whose result is another. */
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
    // Its first start is counted when it is resumed.
    attempt: 0,
    live,
    join,
    hop: Math.max(0, ...inputs.map(({ hop = 0 }) => hop)),
    at: inputs.at(-1)?.at ?? started.at,
    ...promptRulesOf(started.body),
    ...(approved && { approved }),
    // Whatever has become of the task that it worked on.
    byPerson: true,
  };
}

/** The calls that a decision of a person began the turn with. */
function approvedIn(original: LoggedTurn): ToolCall[] | null {
  const isApproved = original.inputs.some(
    (event) => event.kind === 'approval.decided' && event.body.outcome === 'approved',
  );
  return isApproved ? (stepsOf(original)[0]?.body.calls ?? null) : null;
}
