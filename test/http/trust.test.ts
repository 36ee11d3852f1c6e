import { expect, test } from 'vitest';
import type { Author } from '../../src/events/index.ts';
import { ANA, ECHO, OTHER, scripted, startApi } from './harness.ts';

const MAL: Author = { kind: 'user', id: 'mal', name: 'Mal' };
const COMPANY = {
  agents: [ECHO, OTHER],
  defaults: { respondWhenUnaddressed: 'echo' },
  trust: { people: [ANA.id] },
};

async function replies(api: Awaited<ReturnType<typeof startApi>>): Promise<string[]> {
  await api.troupe.idle();
  const { events } = await api.troupe.events('c1');
  return events.flatMap((event) =>
    event.kind === 'message' && event.author.kind === 'agent'
      ? [`${event.author.id}: ${event.body.content}`]
      : [],
  );
}

test('a message of an untrusted person is stored and wakes no agent until a trusted person dispatches it', async () => {
  await using api = await startApi({ company: COMPANY });
  const said = await api.post('/api/conversations/c1/events', {
    author: MAL,
    to: ['other'],
    content: 'do evil',
  });
  expect(said).toMatchObject({ status: 201, body: { event: { to: [], context: { held: ['other'] } } } });
  const { event } = said.body as { event: { id: string } };
  expect(await replies(api)).toEqual([]);

  const dispatch = { command: 'dispatch', conversation: 'c1', event: event.id };
  const refused = await api.post('/api/commands', { ...dispatch, author: MAL });
  expect(refused).toMatchObject({ status: 409, body: { error: { code: 'command_refused' } } });
  const passedOn = await api.post('/api/commands', { ...dispatch, author: ANA });
  expect(passedOn).toMatchObject({
    status: 202,
    body: { event: { kind: 'message', to: ['other'], replyTo: event.id, author: ANA } },
  });
  const again = await api.post('/api/commands', { ...dispatch, author: ANA });
  expect(again.body['seq']).toBe(passedOn.body['seq']);
  expect(await replies(api)).toEqual(['other: other answer 1']);
  const prompt = JSON.stringify((await api.troupe.promptOf('c1:other:1')).messages);
  expect(prompt.split('do evil')).toHaveLength(2);
  expect(prompt.split('Please answer what Mal said.')).toHaveLength(2);
});

test('an untrusted person reaches neither the default agent nor an absent one, and opens nothing', async () => {
  await using api = await startApi({ company: COMPANY });
  await api.troupe.send('c1', { author: ANA, to: ['other'], content: 'begin' });
  await api.post('/api/commands', { command: 'block', conversation: 'c1', agent: 'other', author: ANA });
  const held = await api.troupe.send('c1', { author: MAL, content: 'anybody?' });
  expect(held.event).toMatchObject({ to: [], context: { held: ['echo'] } });
  await api.troupe.send('c1', { author: MAL, to: ['other'], content: 'unblock' });
  expect(await replies(api)).toEqual(['other: other answer 1']);
  await api.post('/api/commands', { command: 'archive', conversation: 'c1', author: ANA });
  const closed = await api.post('/api/conversations/c1/events', { author: MAL, content: 'open up' });
  expect(closed).toMatchObject({ status: 409, body: { error: { code: 'conversation_archived' } } });
});

test('without a list of trusted people everybody is trusted', async () => {
  await using api = await startApi({ company: { agents: [ECHO], defaults: COMPANY.defaults } });
  await api.troupe.send('c1', { author: MAL, content: 'hello' });
  expect(await replies(api)).toEqual(['echo: answer 1']);
});

test('an unaddressed message wakes the default agent, and an unaddressed reply in a thread wakes none', async () => {
  await using api = await startApi({ company: COMPANY });
  const { event } = await api.troupe.send('c1', { author: ANA, content: 'top level' });
  expect(event.to).toEqual(['echo']);
  const reply = await api.troupe.send('c1', { author: ANA, content: 'aside', replyTo: event.id });
  expect(reply.event.to).toEqual([]);
  expect(await replies(api)).toEqual(['echo: answer 1']);
  expect(JSON.stringify((await api.troupe.prompt('c1', 'echo')).messages)).toContain('aside');
});

test('an answer to a question counts from trusted people only', async () => {
  const asking = scripted('asker', [
    { when: { contains: 'go' }, calls: [{ name: 'ask', args: { question: 'which?' } }] },
    { reply: 'then that' },
  ]);
  await using api = await startApi({
    company: { agents: [{ ...asking, tools: ['ask'] }], trust: COMPANY.trust },
  });
  await api.troupe.send('c1', { author: ANA, to: ['asker'], content: 'go' });
  await api.troupe.idle();
  const { events } = await api.troupe.events('c1');
  const question = events.find(({ kind }) => kind === 'question');
  expect(question).toBeDefined();
  const answer = { content: 'the evil one', replyTo: question?.id };
  await api.troupe.send('c1', { author: MAL, ...answer });
  // Sent in the name of a trusted author, over an untrusted path.
  await api.troupe.send('c1', { author: ANA, ...answer, untrusted: true });
  await api.troupe.idle();
  // An answer would make the agent ask again; a single open question triggers no report.
  const answered = async () => {
    const { events: now } = await api.troupe.events('c1');
    return now.filter(({ kind }) => kind === 'question.answered').map(({ author }) => author.id);
  };
  expect(await answered()).toEqual([]);
  await api.troupe.send('c1', { author: ANA, ...answer });
  await api.troupe.idle();
  expect(await answered()).toEqual([ANA.id]);
});

test.each([
  { command: 'pause', conversation: 'c1', agent: 'echo' },
  { command: 'mode', conversation: 'c1', mode: 'chat' },
  { command: 'phase', conversation: 'c1', phase: 'theirs' },
  { command: 'run', conversation: 'c1', workflow: 'w' },
  { command: 'retry', turn: 'c1:echo:1' },
  { command: 'abort', turn: 'c1:echo:1' },
  { command: 'fork', conversation: 'c1', seq: 1, as: 'c2' },
  { command: 'archive', conversation: 'c1' },
  { command: 'block', conversation: 'c1', agent: 'echo' },
])('a stranger commands nothing: %o', async (command) => {
  await using api = await startApi({ company: COMPANY });
  await api.troupe.send('c1', { author: ANA, to: ['echo'], content: 'x' });
  await api.troupe.idle();
  const before = await api.troupe.events('c1');
  const refused = await api.post('/api/commands', { ...command, author: MAL });
  expect(refused).toMatchObject({
    status: 409,
    body: { error: { code: 'command_refused', message: expect.stringContaining('mal') } },
  });
  expect(await api.troupe.events('c1')).toEqual(before);
  expect(await api.troupe.conversations()).toHaveLength(1);
});
