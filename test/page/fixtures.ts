import type { ConversationId, Event } from '../../src/events/index.ts';
import type { PageStage } from './stage.ts';
import { BEN } from './stage.ts';

/** Conversations of the office, made by playing them; `id` is the conversation to play in. */

/** All has been said, nobody is at work: five turns, a hand-over, a tool. */
export async function playIdle(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['orchestrator'], 'Good morning. I want to launch the new tariff on Monday.');
  await stage.play(id, ['critic'], 'Is there anything missing in that plan?', { author: BEN });
  await stage.play(id, ['orchestrator'], 'Then over to the researcher, please.');
  await stage.play(id, ['researcher'], 'Thank you. That is all for now.');
}

/** One agent answers and does not end; another is paused with a message waiting. */
export async function playBusy(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['orchestrator'], 'Good morning. I want to launch the new tariff on Monday.');
  await stage.play(id, ['writer'], 'Find a headline for it.');
  await stage.say(id, ['researcher'], 'What do the tide tables say for the week?');
  await isSpeaking(stage, id, 'researcher');
}

/** The writer's turn has failed, and a report of four thousand tokens came into the researcher's second prompt. */
export async function playFailed(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['researcher'], 'Good morning. Please be ready for a question about May.');
  await stage.play(id, ['researcher'], 'Read the whole report on the crates of May, please.');
  await stage.play(id, ['critic'], 'Is there anything missing in that?', { author: BEN });
  // Somebody pays before it is tried again.
  stage.vendor.spent.add('writer');
  await stage.play(id, ['writer'], 'Now write the announcement of the new tariff.');
  stage.vendor.spent.delete('writer');
}

const PARAGRAPHS = 14;
const FILLER = 'the ledger names the ship, her master, the cargo and what was paid for it at the quay; ';

/** So much has been said that the archivist's view had to be summarised. */
export async function playCompacted(stage: PageStage, id: string): Promise<void> {
  await stage.play(id, ['archivist'], 'Index the ledgers before 1900 first. Never guess a damaged page.');
  for (let n = 1; n <= PARAGRAPHS; n++) {
    await stage.say(id, [], `Ledger ${1880 + n}: ${FILLER.repeat(18)}`);
  }
  await stage.play(id, ['archivist'], 'That is all of them. How far are you?');
  await stage.play(id, ['archivist'], 'And which comes next?');
}

/** A person has been asked something, by the writer. */
export function playQuestion(stage: PageStage, id: string): Promise<void> {
  return stage.play(id, ['writer'], 'Find a headline for the new tariff.');
}

/** A call waits for somebody to agree to it. */
export function playApproval(stage: PageStage, id: string): Promise<void> {
  return stage.play(id, ['writer'], 'I like it: publish it.');
}

/** Resolves once the agent has begun to speak. */
export async function isSpeaking(stage: PageStage, id: string, agent: string): Promise<void> {
  const spoke = Promise.withResolvers<void>();
  const off = stage.troupe.watch((note) => {
    if (note.type !== 'delta') return;
    const { conversation, agent: by } = note.delta.address;
    if (conversation === id && by === agent) spoke.resolve();
  });
  await stage.until(id, ({ kind, author }) => kind === 'turn.started' && author.id === agent);
  await spoke.promise;
  off();
}

/** Ends what would otherwise never end. */
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
