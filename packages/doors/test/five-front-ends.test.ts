import OpenAI from 'openai';
import { expect, test } from 'vitest';
import { clientOf, lines as aguiLines } from './ag-ui-client.ts';
import { overHttp, textOf } from './mcp-client.ts';
import { DESK, openStage, REFUNDS, type Stage } from './stage.ts';
import { atRest, historyOf, lines as chatLines, openChat, resume } from './ui-chat.ts';

/** A support desk whose last answer waits until it is released. */
async function desk() {
  const open = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  let count = 0;
  const stage = await openStage(['desk', 'billing', 'store'], {
    ...DESK,
    agents: { ...DESK.agents, store: { name: 'Store' } },
    answers: {
      ...DESK.answers,
      async billing() {
        count += 1;
        if (count === 1) return REFUNDS;
        asked.resolve();
        await open.promise;
        return { text: 'Your money is back.' };
      },
    },
  });
  return { stage, letGo: () => open.resolve(), isAnswering: asked.promise };
}

interface Frame {
  author: { name: string };
  kind: string;
  body: { content?: string };
}

/** What Troupe's page reads: the texts of the log, with their authors. */
async function pageLines({ url }: Stage): Promise<string[]> {
  const { events } = (await (await fetch(`${url}/api/conversations/c1/events`)).json()) as {
    events: Frame[];
  };
  return events.flatMap(({ author, kind, body }) =>
    (kind === 'message' || kind === 'step') && body.content ? [`${author.name}: ${body.content}`] : [],
  );
}

async function openTasks({ url }: Stage): Promise<string[]> {
  const answer = await fetch(`${url}/api/conversations/c1/tasks?open=true`);
  return ((await answer.json()) as { tasks: { id: string }[] }).tasks.map(({ id }) => id);
}

const words = (all: readonly string[]) =>
  all.filter((line) => /^(?:assistant )?(?:Desk|Billing): /.test(line));

test('five front ends see the same words by the same authors, and an approval given in one is gone in the others', async () => {
  const { stage, letGo, isAnswering } = await desk();
  await using _stage = stage;
  const { url } = stage;
  // The SDK of OpenAI asks.
  const sdk = new OpenAI({ baseURL: `${url}/api/conversations/c1/v1`, apiKey: 'none', maxRetries: 0 });
  const { choices } = await sdk.chat.completions.create({
    model: 'desk',
    messages: [{ role: 'user', content: 'Refund order 4.' }],
  });
  const [request = ''] = await openTasks(stage);
  expect(choices[0]?.message.content).toBe(
    `One moment.\n\n**Billing:** I refund it.\n\n[Billing waits for approval to call refund {"order":4} (${request})]`,
  );
  // The others come later and see the same.
  const before = ['Desk: One moment.', 'Billing: I refund it.'];
  const agui = clientOf(`${url}/api/conversations/c1/ag-ui`);
  await agui.agent.runAgent();
  expect(words(aguiLines(agui.agent.messages))).toEqual(before.map((line) => `assistant ${line}`));
  expect(agui.agent.pendingInterrupts).toHaveLength(1);
  const { messages } = await historyOf(url);
  const chat = openChat(url, { messages });
  expect(words(chatLines(chat.messages))).toEqual(before);
  expect(chatLines(chat.messages)).toContain('Billing calls refund: approval-requested');
  const mcp = await overHttp(url);
  const read = async () => {
    const { contents } = await mcp.readResource({ uri: 'troupe://conversations/c1' });
    return (contents[0] as { text: string }).text;
  };
  expect(await read()).toMatch(/Desk[^]*One moment\.[^]*Billing[^]*I refund it\./);
  expect(words(await pageLines(stage))).toEqual(before);
  // One approves; the others see what follows while it is said.
  const payload = { approved: true };
  const [interrupt] = agui.agent.pendingInterrupts;
  const resumed = agui.agent.runAgent({
    resume: [{ interruptId: interrupt?.id ?? '', status: 'resolved', payload }],
  });
  await isAnswering;
  expect(await openTasks(stage)).toEqual([]);
  const late = await mcp.callTool({
    name: 'decide',
    arguments: { conversation: 'c1', request, approved: false },
  });
  expect(textOf(late)).toMatch(/decided|approved|ended/);
  const watching = resume(chat);
  await watching.opened;
  letGo();
  await Promise.all([resumed, watching.done]);
  await atRest(chat);
  const after = [...before, 'Billing: Your money is back.'];
  expect(agui.agent.pendingInterrupts).toEqual([]);
  expect(words(aguiLines(agui.agent.messages))).toEqual(after.map((line) => `assistant ${line}`));
  const shown = chatLines(chat.messages);
  expect(shown).toContain('Billing calls refund: output-available');
  expect(words(shown)).toEqual(after);
  expect(words(await pageLines(stage))).toEqual(after);
  expect((await read()).match(/Your money is back\./g)).toHaveLength(1);
  const next = await sdk.chat.completions.create({
    model: 'store',
    messages: [{ role: 'user', content: 'Thanks.' }],
  });
  expect(next.choices[0]?.message.content).toBe('store answers 1');
  await mcp.close();
});
