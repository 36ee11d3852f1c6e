import {
  type Feature,
  cacheKeyOf,
  type TurnRun,
  ownDraft,
  writeMeanwhile,
  journalKey,
} from '../../attempt/turn-run.ts';
import { resolve } from 'node:path';
import {
  type Event,
  type NamedSession,
  type SessionChangedBody,
  type SessionReason,
  type EventDraft,
  type PromptRecord,
  type Session,
  DEFAULT_TENANT,
} from '../../../events/index.ts';
import { deltaOf, isAdopted, placeOf, sessionMismatch, standsAt } from '../../../context/index.ts';
import { type AnswerSession, type Sending, termsFor, type BegunAnswer } from '../../attempt/feature-types.ts';
import type { ModelEvent, ModelRequest } from '../../../providers/provider.ts';
import type { ActorPatch } from '../../../store/store.ts';
import { reachOf } from '../../attempt/pinned-turn.ts';
import { createHash } from 'node:crypto';

export const sessions: Feature = {
  open: () => ({
    sessions: {
      namedIn: sessionNamedIn,
      adopt: adoptSession,
      ask: askSession,
      withBegun,
      hear(run, event) {
        if (event.type === 'begun') noteBegun(run, event.mark);
        else hearSession(run, event);
      },
      answered: answerSession,
      lose: loseSession,
      leave: leaveSession,
      patch: sessionPatch,
    },
  }),
};

/** The session that the inputs of a turn name for an agent; the last one counts. */
function sessionNamedIn(inputs: readonly Event[], agent: string): NamedSession | null {
  return inputs.findLast(({ context }) => context?.session?.agent === agent)?.context?.session ?? null;
}

/**
 * Makes the session that an input names the agent's own, or records why that is not possible. Its first request has the whole
 * prompt, because the session has seen nothing of the conversation.
 */
async function adoptSession(run: TurnRun): Promise<void> {
  const { turn, runtime, baseline, resumed } = run;
  const { session } = run.meanwhile;
  const named = turn.session;
  if (!named || session.base?.id === named.id) return;
  const refusal = await refusalOf(run, named);
  if (refusal) return noteSession(run, 'refused', named.id, refusal);
  if (!resumed) noteSession(run, 'adopted', named.id, 'named');
  session.base = {
    provider: runtime.profile.provider,
    model: runtime.profile.model,
    id: named.id,
    checkpoint: '',
    home: runtime.provider.home ?? '',
    baseline: baseline.id,
    sent: 0,
    sentHash: '',
    turn: turn.id,
    compacted: false,
    state: 'ok',
  };
  session.reason = 'named';
}

async function refusalOf(run: TurnRun, named: NamedSession): Promise<SessionReason | null> {
  const { profile, provider } = run.runtime;
  if (named.refused) return named.refused;
  if (named.provider !== profile.provider || !provider.capabilities.sessionResumption) return 'provider';
  const cwd = provider.cwdOf?.(cacheKeyOf(run));
  if (named.cwd !== undefined && (cwd === undefined || resolve(named.cwd) !== resolve(cwd)))
    return 'elsewhere';
  return (await takeSession(run, named.id)) ? null : 'taken';
}

/**
 * Decides what is sent to a provider with sessions. A session gets what it has not seen: the results for which it waits, or
 * everything since the last valid answer. If the session no longer matches, a new one gets the whole prompt. This is decided
 * for each try, because a failure closes the turn in the provider.
 */
function askSession(run: TurnRun): Sending {
  const { prompt, live, turn } = run;
  const { session } = run.meanwhile;
  if (!prompt) throw new Error('a model is called only with an assembled prompt');
  const place = placeOf(live.view, turn.id);
  const { open } = session;
  if (open && standsAt(live.view, open)) {
    const delta = deltaOf(prompt, live.view, open);
    const isAnswered = delta.messages.every(({ role }) => role === 'tool');
    if (isAnswered) return { prompt: seen(run, delta), session: { request: { kind: 'continue' }, place } };
  }
  leaveSession(run);
  dismissMismatch(run);
  const { base } = session;
  if (!base) return { prompt, session: { request: { kind: 'start' }, place } };
  const mark = { id: base.id, checkpoint: base.checkpoint };
  if (isAdopted(base)) return { prompt, session: { request: { kind: 'resume', mark }, place } };
  const delta = deltaOf(prompt, live.view, base);
  return { prompt: seen(run, delta), session: { request: { kind: 'resume', mark }, place } };
}

function seen({ lease }: TurnRun, delta: PromptRecord): PromptRecord {
  return { ...delta, cursor: { before: lease.record.cursor, after: delta.upTo } };
}

function dismissMismatch(run: TurnRun): void {
  const { runtime, live, baseline } = run;
  const { session } = run.meanwhile;
  if (!session.base) return;
  const isBroken = mayBeTouched(run);
  const found: Session = isBroken ? { ...session.base, state: 'unknown' } : session.base;
  const reason = sessionMismatch(live.view, found, termsFor(runtime, baseline.id, found));
  if (reason) Object.assign(session, { base: null, reason });
}

/** Records what a provider reports about its session. A session that simply continues is not recorded. */
function hearSession(run: TurnRun, event: Extract<ModelEvent, { type: 'session' | 'compacted' }>): void {
  const { session } = run.meanwhile;
  if (event.type === 'compacted') {
    session.compacted = true;
    return noteSession(run, 'compacted', session.base?.id ?? '');
  }
  const { change, id } = event;
  if (change === 'warm') return;
  if (change !== 'started') return noteSession(run, change, id);
  writeMeanwhile(run, takeSession(run, id));
  const { reason } = session;
  noteSession(run, reason === 'first' ? 'started' : 'rebuilt', id, reason);
}

/** The session's part of a journalled answer. Also records whether the turn is still open in the provider. */
function answerSession(
  { meanwhile: { session }, runtime }: TurnRun,
  sending: Sending,
  { stop, session: mark }: Extract<ModelEvent, { type: 'done' }>,
): { session?: AnswerSession } {
  if (!sending.session) return {};
  const { place } = sending.session;
  session.open = stop === 'calls' ? place : null;
  return {
    session: {
      mark: mark ? { ...mark, home: runtime.provider.home ?? '' } : null,
      delta: sending.prompt.delta ?? null,
      compacted: session.compacted,
      ...(stop === 'calls' && { place: { ...place, turn: null } }),
    },
  };
}

/** Drops a session that the provider no longer knows, so that a new one gets the whole prompt. */
function loseSession(run: TurnRun, message: string): void {
  const { deps, live } = run;
  const { session } = run.meanwhile;
  noteSession(run, 'lost', session.base?.id ?? '', 'lost');
  Object.assign(session, { base: null, reason: 'lost' });
  deps.onWarning(new Error(message), `session of @${live.address.agent}`);
}

function noteSession(
  run: TurnRun,
  change: SessionChangedBody['change'],
  id: string,
  reason?: SessionReason,
): void {
  const { deps, live, lease, runtime } = run;
  const { session } = run.meanwhile;
  session.notes += 1;
  const draft: EventDraft = {
    ...ownDraft(run, `session:${lease.record.fence}.${session.notes}`),
    kind: 'session.changed',
    body: { change, provider: runtime.profile.provider, session: id, ...(reason && { reason }) },
  };
  writeMeanwhile(run, deps.log.append(live.address, [draft]));
}

/**
 * Adds the mark by which a provider resumes an answer that it has begun. Marks are in the journal, beside the answers of the
 * steps, because the turn may continue in another process.
 *  B1  Marks are numbered, and the last one counts.
 *  B2  If a resumed turn has taken in events at a step, its marks do not count, because the begun answer has not seen them.
 */
async function withBegun(run: TurnRun, request: ModelRequest): Promise<ModelRequest> {
  const { last } = await marksOf(run);
  return last === null ? request : { ...request, begun: last };
}

/** Records a mark. To be called only during a call whose request was made by `withBegun`. */
function noteBegun(run: TurnRun, mark: string): void {
  const { deps, live, meanwhile } = run;
  const { begun } = meanwhile;
  if (!begun || begun.last === mark) return;
  const { key, count } = begun;
  meanwhile.begun = { key, count: count + 1, last: mark };
  const { tenant } = live.address;
  writeMeanwhile(run, deps.store.journal(tenant, `${key}${count}`, mark, deps.clock.now()));
}

async function marksOf(run: TurnRun): Promise<BegunAnswer> {
  const { deps, live, meanwhile, resumed } = run;
  const key = keyOf(run);
  if (meanwhile.begun?.key === key) return meanwhile.begun;
  let count = 0;
  let last: string | null = null;
  for (; resumed; count += 1) {
    const mark = await deps.store.readJournal(live.address.tenant, `${key}${count}`);
    if (mark === null) break;
    last = mark;
  }
  meanwhile.begun = { key, count, last };
  return meanwhile.begun;
}

function keyOf({ turn, step, meanwhile: { key } }: TurnRun): string {
  const index = key?.step === step ? key.index : 0;
  return `${journalKey(turn.id, step)}/begun.${index}.`;
}

/** Ends an open turn, for whose results the provider would otherwise wait for ever. */
function leaveSession(run: TurnRun): void {
  const { session } = run.meanwhile;
  if (!session.open) return;
  session.open = null;
  run.runtime.provider.leave?.(cacheKeyOf(run));
}

/** Whether this attempt or an earlier one sent a request that was not answered to the end. */
function mayBeTouched({ meanwhile: { session }, resumed }: TurnRun): boolean {
  return session.touched || resumed;
}

/**
 * The session fields of the commit. Only a turn that is done advances the session: to its last answer, or to what was sent
 * before the answer whose calls ended it. After any other turn, the next one rewinds the session.
 */
function sessionPatch(run: TurnRun): Pick<NonNullable<ActorPatch['state']>, 'session' | 'cursor'> {
  const { turn, live, lease, runtime, ending } = run;
  const { session } = run.meanwhile;
  const { mark = null, place } = (ending.kind === 'done' ? session.last : null) ?? {};
  if (mark) {
    const { profile } = runtime;
    const began = session.base?.id === mark.id ? session.base : null;
    return {
      session: {
        provider: profile.provider,
        model: profile.model,
        ...mark,
        baseline: run.baseline.id,
        ...(place ?? placeOf(live.view, turn.id)),
        compacted: (began?.compacted ?? false) || session.compacted,
        state: 'ok',
      },
      cursor: reachOf(turn),
    };
  }
  const { base } = session;
  if (!base) return { session: null, cursor: null };
  const canRewind = runtime.provider.capabilities.rewind && !isAdopted(base);
  const isLeft = mayBeTouched(run) && !canRewind;
  return { session: isLeft ? { ...base, state: 'unknown' } : base, cursor: lease.record.cursor };
}

/**
 * Reserves a session for this turn's actor, for ever. Returns false if it belongs to another agent or conversation of any
 * tenant, or if this actor has left it before: then its place in the log is unknown.
 */
async function takeSession({ deps, live, runtime, turn }: TurnRun, id: string): Promise<boolean> {
  const { tenant, conversation, agent } = live.address;
  const owner = JSON.stringify({ tenant, conversation, agent, turn: turn.id });
  const place = [runtime.profile.provider, runtime.provider.home ?? '', id];
  const key = `session/${createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 32)}`;
  return (await deps.store.compareAndSet(DEFAULT_TENANT, key, null, owner)) === owner;
}
