import type { ConversationId, Event } from '../../src/events/index.ts';
import type { PageStage } from './stage.ts';
import { BEN } from './stage.ts';

/** Plays conversations of the office. `id` is the conversation to play in. */

/** All agents are idle after five turns with a handoff and a tool call. */
export async function playIdle(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['orchestrator'], 'Good morning. I want to launch the new tariff on Monday.');
  await stage.play(id, ['critic'], 'Is there anything missing in that plan?', { author: BEN });
  await stage.play(id, ['orchestrator'], 'Then over to the researcher, please.');
  await stage.play(id, ['researcher'], 'Thank you. That is all for now.');
}

/** One agent runs without end; another is paused with a pending message. */
export async function playBusy(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['orchestrator'], 'Good morning. I want to launch the new tariff on Monday.');
  await stage.play(id, ['writer'], 'Find a headline for it.');
  await stage.say(id, ['researcher'], 'What do the tide tables say for the week?');
  await isSpeaking(stage, id, 'researcher');
}

/** The writer's turn has failed, and the researcher's second prompt has a new report of four thousand tokens. */
export async function playFailed(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['researcher'], 'Good morning. Please be ready for a question about May.');
  await stage.play(id, ['researcher'], 'Read the whole report on the crates of May, please.');
  await stage.play(id, ['critic'], 'Is there anything missing in that?', { author: BEN });
  // The account is paid before the retry.
  stage.vendor.spent.add('writer');
  await stage.play(id, ['writer'], 'Now write the announcement of the new tariff.');
  stage.vendor.spent.delete('writer');
}

const PARAGRAPHS = 14;
const FILLER = 'the ledger names the ship, her master, the cargo and what was paid for it at the quay; ';

/** The conversation is so long that the archivist's view was compacted. */
export async function playCompacted(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['archivist'], 'Index the ledgers before 1900 first. Never guess a damaged page.');
  for (let n = 1; n <= PARAGRAPHS; n++) {
    await stage.say(id, [], `Ledger ${1880 + n}: ${FILLER.repeat(18)}`);
  }
  await stage.play(id, ['archivist'], 'That is all of them. How far are you?');
  await stage.play(id, ['archivist'], 'And which comes next?');
}

/** The writer has asked people a question. */
export function playQuestion(stage: PageStage, id: string): Promise<void> {
  return stage.play(id, ['writer'], 'Find a headline for the new tariff.');
}

/** A call waits for approval. */
export function playApproval(stage: PageStage, id: string): Promise<void> {
  return stage.play(id, ['writer'], 'I like it: publish it.');
}

/** Resolves once the agent has begun to speak. */
export async function isSpeaking(stage: PageStage, id: string, agent: string): Promise<void> {
  const spoke = Promise.withResolvers<void>();
  const off = stage.troupe.watch((note) => {
    if (note.type !== 'text') return;
    if (note.conversation === id && note.agent === agent) spoke.resolve();
  });
  await stage.until(id, ({ kind, author }) => kind === 'turn.started' && author.id === agent);
  await spoke.promise;
  off();
}

/** Aborts the turn that would never end. */
export async function abortAll(stage: PageStage, id: string): Promise<void> {
  const events = await stage.events(id);
  const ended = new Set(events.filter(isEnd).map(({ turn }) => turn));
  for (const { kind, turn } of events) {
    if (kind !== 'turn.started' || turn === undefined || ended.has(turn)) continue;
    await stage.troupe.command({ command: 'abort', turn }, BEN);
  }
  await stage.troupe.idle();
}

function isEnd({ kind }: Event): boolean {
  return kind === 'turn.done' || kind === 'turn.failed' || kind === 'turn.aborted';
}

export function pauseAgent(stage: PageStage, id: string, agent: string): Promise<Event> {
  return stage.troupe.command(
    { command: 'pause', conversation: id as ConversationId, agent: agent as never },
    BEN,
  );
}
