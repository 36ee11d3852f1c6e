import type { Author, Event, Troupe } from '../../src/index.ts';
import { REVIEWER_PUBKEY, type TestRun } from './company.ts';
import { heard, missedBlock, opening, type PlayedTurn, replyOf, type Stage, triggersOf } from './stage.ts';

export const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const BEN: Author = { kind: 'user', id: 'ben', name: 'Ben' };

export interface Story {
  stage: Stage;
  pass: (minutes: number) => void;
  testRun: TestRun;
  /** A pause between scenes for people watching. */
  rest: () => Promise<void>;
}

const SCENES = [converse, join, comeBack, deliver, breakOff, interrupt];

export async function playAll(story: Story): Promise<void> {
  for (const scene of SCENES) {
    const before = story.stage.turns.length;
    await scene(story);
    for (const turn of story.stage.turns.slice(before)) checkPrompts(story.stage, turn);
    await story.rest();
    story.pass(20);
  }
}

/** Checks that hold for every turn of every scene. */
function checkPrompts(stage: Stage, { trace, prompts }: PlayedTurn): void {
  for (const prompt of prompts) {
    const seqs = prompt.messages.flatMap((message) => message.seqs);
    const shown = new Set(seqs);
    const missing = stage.events.filter(
      (event) => event.seq <= prompt.upTo && isSpoken(event, trace.agent) && !shown.has(event.seq),
    );
    const where = `prompt ${prompt.step} of ${trace.turn}`;
    if (!prompt.verified) throw new Error(`${where}, rendered from the log, is not what was sent`);
    if (shown.size !== seqs.length) throw new Error(`${where} holds an event twice: ${seqs.join(', ')}`);
    if (missing.length > 0) throw new Error(`${where} lacks #${missing.map(({ seq }) => seq).join(', #')}`);
  }
}

/** For its author, a handoff made with a tool is the call itself. */
function isSpoken({ kind, author }: Event, agent: string): boolean {
  return kind === 'message' || (kind === 'handoff' && author.id !== agent);
}

async function converse({ stage }: Story): Promise<void> {
  stage.scene('Two people and two agents converse');
  const [plan] = await stage.play(
    ANA,
    [],
    'We need a rate limiter for the public API. Ben knows the limits.',
  );
  const [answer] = await stage.play(
    BEN,
    ['coder'],
    '100 requests a minute per key, bursts of 20, and no new service. Can you do that?',
  );
  stage.claim(
    'an unaddressed message went to the planner, and one for the coder only to the coder',
    plan?.agent === 'planner' && answer?.agent === 'coder' && stage.turns.length === 2,
  );
  stage.claim(
    "the coder reads the planner's words as the planner's, never as its own",
    answer !== undefined &&
      heard(opening(answer)).includes('[@planner #') &&
      opening(answer).messages.every(({ role }) => role !== 'assistant'),
  );
}

async function join({ stage }: Story): Promise<void> {
  stage.scene('An agent joins in the middle, addressed by its public key');
  const earlier = stage.events.filter(({ kind }) => kind === 'message').map(({ seq }) => seq);
  const asked = await stage.say(ANA, [REVIEWER_PUBKEY], 'Please check the plan before anybody writes code.');
  const [turn] = await stage.quiet(stage.turns.length);
  stage.claim(
    'the key was resolved to the reviewer when the message was stored',
    asked.to.join() === 'reviewer' && turn?.agent === 'reviewer',
  );
  if (!turn) return;
  const prompt = opening(turn);
  const history = prompt.messages.flatMap(({ seqs }) => seqs);
  stage.claim(
    'the reviewer got the whole history, message by message and in order, and then the question',
    history.join() === [...earlier, asked.seq].join() && missedBlock(prompt) === '',
  );
}

async function comeBack({ stage, pass }: Story): Promise<void> {
  stage.scene('Another returns, and learns what it missed');
  await stage.play(BEN, ['coder'], 'And when a key is over its limit?');
  pass(45);
  const [turn] = await stage.play(ANA, ['planner'], 'Where do we stand?');
  if (!turn) throw new Error('scene 3: the planner did not answer');
  const prompt = opening(turn);
  const block = prompt.messages.find(({ content }) => content.startsWith('[new #'));
  const missed = stage.events.filter(
    ({ kind, seq, author }) =>
      kind === 'message' && author.id !== 'planner' && seq > 1 && seq < (triggersOf(turn)[0]?.seq ?? 0),
  );
  stage.claim(
    `the block holds each of the ${missed.length} messages it missed, once and in order`,
    block?.seqs.join() === missed.map(({ seq }) => seq).join() && missed.length === 6,
  );
  stage.claim(
    'the question comes after the block, not in it',
    block !== undefined &&
      !block.content.includes('Where do we stand?') &&
      prompt.messages.at(-1)?.content.includes('Where do we stand?') === true,
  );
}

async function deliver({ stage }: Story): Promise<void> {
  stage.scene('One agent hands over to another, with a structured summary');
  const [from, to] = await stage.play(ANA, ['planner'], 'Then build it.');
  if (!from || !to) throw new Error('scene 4: expected two turns');
  const handoff = from.trace.events.find(({ kind }) => kind === 'handoff');
  stage.claim(
    "the planner's turn ended in a handoff to the coder, and the coder's began with it",
    handoff?.to.join() === 'coder' && triggersOf(to)[0]?.seq === handoff?.seq,
  );
  const block = missedBlock(opening(to));
  stage.claim(
    "goal, state, next step and open question open the coder's prompt",
    ['Goal: ', 'State: ', 'Next: ', 'Open questions: '].every((part) => block.includes(part)),
  );
}

async function breakOff({ stage }: Story): Promise<void> {
  stage.scene('A model call breaks off half-way, and the turn is resumed');
  const [turn] = await stage.play(BEN, ['reviewer'], 'Please review the code.');
  if (!turn) throw new Error('scene 5: the reviewer did not answer');
  const error = turn.trace.events.find(({ kind }) => kind === 'error');
  const partial = error?.kind === 'error' ? (error.body.partial ?? '') : '';
  const reply = replyOf(turn);
  stage.claim(
    'the error is in the log, with the text received until then',
    error?.kind === 'error' && error.body.code === 'provider_truncated' && partial.length > 20,
  );
  stage.claim(
    'the same prompt was sent again, and one whole answer is in the conversation',
    turn.prompts.length === 1 &&
      reply.startsWith(partial) &&
      reply.length > partial.length &&
      turn.trace.status === 'done',
  );
}

async function interrupt({ stage, testRun }: Story): Promise<void> {
  stage.scene('A message arrives while an agent is busy');
  const before = stage.turns.length;
  await stage.say(ANA, ['coder'], 'Fix both findings and run the tests.');
  const atRest = stage.quiet(before).then(() => {
    throw new Error('scene 6: the coder stopped without running the tests');
  });
  await Promise.race([testRun.started.promise, atRest]);
  stage.note('  @coder is running the tests');
  const late = await stage.say(BEN, ['coder'], 'Please also log what is refused.');
  testRun.mayEnd.resolve();
  const [busy, next, ...more] = await stage.quiet(before);
  if (!busy || !next) throw new Error('scene 6: expected two turns');
  const seen = busy.prompts.flatMap(({ messages }) => messages.flatMap(({ seqs }) => seqs));
  const reply = busy.trace.events.find(({ kind, turn }) => kind === 'message' && turn === busy.trace.turn);
  stage.claim(
    'the message came while the coder was at work, and no prompt of that turn contains it',
    late.seq < (reply?.seq ?? 0) && !seen.includes(late.seq),
  );
  stage.claim(
    'the next turn answered the message, and nothing was answered twice',
    triggersOf(next)
      .map(({ seq }) => seq)
      .join() === `${late.seq}` &&
      replyOf(next) !== '' &&
      more.length === 0,
  );
}

/** The final figures, from the log and the prompts. */
export async function summarise({ turns, events }: Stage, troupe: Troupe) {
  const prompts = turns.flatMap((turn) => turn.prompts);
  const failed = events.filter(({ kind, turn }) => kind === 'error' && turn !== undefined).length;
  const { waiting, active, delayed } = await troupe.queues();
  return {
    turns: turns.length,
    calls: prompts.length + failed,
    failed,
    sent: prompts.reduce((sum, { tokens }) => sum + tokens.total, 0),
    events: events.length,
    verified: prompts.filter(({ verified }) => verified).length,
    prompts: prompts.length,
    left: waiting + active + delayed,
  };
}
