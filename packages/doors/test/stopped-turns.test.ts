import OpenAI from 'openai';
import { expect, test } from 'vitest';
import type { FakeReply } from '../../testing/src/fake-vendors.ts';
import { UMA } from '../../../test/support/company.ts';
import { a2aClient, Kept, said } from './a2a-client.ts';
import { clientOf, lines as aguiLines } from './ag-ui-client.ts';
import { overHttp, textOf } from './mcp-client.ts';
import { openStage, type Stage } from './stage.ts';
import { lines as chatLines, openChat } from './ui-chat.ts';

const WORDS = 'Once upon a time, never';
const SAID = 'Once upon a time';

interface Door {
  name: string;
  /** Asks @bo, and returns what a reader has at the end. */
  ask: (stage: Stage) => Promise<string>;
}

const sdk = ({ url }: Stage) =>
  new OpenAI({ baseURL: `${url}/api/conversations/c1/v1`, apiKey: 'none', maxRetries: 0 });

const DOORS: Door[] = [
  {
    name: 'chat completions',
    async ask(stage) {
      let text = '';
      const stream = await sdk(stage).chat.completions.create({
        model: 'bo',
        messages: [{ role: 'user', content: 'Go.' }],
        stream: true,
      });
      try {
        for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? '';
      } catch (error) {
        expect(String(error)).toContain('@bo');
      }
      return text;
    },
  },
  {
    name: 'responses',
    async ask(stage) {
      let text = '';
      const stream = await sdk(stage).responses.create({ model: 'bo', input: 'Go.', stream: true });
      let last = '';
      for await (const event of stream) {
        last = event.type;
        if (event.type === 'response.output_text.delta') text += event.delta;
      }
      expect(last).toBe('response.failed');
      return text;
    },
  },
  {
    name: 'useChat',
    async ask({ url }) {
      const chat = openChat(url);
      await chat.sendMessage({ text: 'Go.', metadata: { to: ['bo'] } });
      const texts = chatLines(chat.messages).filter((line) => line.startsWith('bo: '));
      return texts.join('|').replaceAll('bo: ', '');
    },
  },
  {
    name: 'AG-UI',
    async ask({ url }) {
      const client = clientOf(`${url}/api/conversations/c1/ag-ui?to=bo`);
      await client.say('u1', 'Go.');
      const texts = aguiLines(client.agent.messages).filter((line) => line.startsWith('assistant'));
      return texts.join('|').replaceAll('assistant bo: ', '');
    },
  },
  {
    name: 'A2A',
    async ask({ url }) {
      const client = await a2aClient(url, 'bo');
      const kept = new Kept();
      for await (const event of client.sendMessageStream(said('Go.', { contextId: 'c1' }))) kept.take(event);
      return kept.text;
    },
  },
  {
    name: 'MCP',
    async ask({ url }) {
      const mcp = await overHttp(url);
      const lines: string[] = [];
      const result = await mcp.callTool(
        { name: 'ask', arguments: { agent: 'bo', conversation: 'c1', message: 'Go.' } },
        { onprogress: ({ message }) => void lines.push(message ?? '') },
      );
      await mcp.close();
      return [...lines.filter((line) => line.includes('Once')), textOf(result)].join('|');
    },
  },
];

const ENDS: { name: string; reply: FakeReply; stops: boolean }[] = [
  { name: 'that people stop', reply: { breaks: { after: 4, how: 'hang' } }, stops: true },
  { name: 'that fails in the middle', reply: { error: { code: 'provider_auth', after: 4 } }, stops: false },
];

for (const { name: how, reply, stops } of ENDS)
  test.each(DOORS)(`$name: the words of a turn ${how} come once`, async ({ ask }) => {
    await using stage = await openStage(['bo'], {
      answers: { bo: () => ({ text: WORDS, chunk: 4, ...reply }) },
    });
    let told = '';
    stage.troupe.watch((note) => {
      if (note.type !== 'text') return;
      told += note.text;
      if (stops && told === SAID) void stage.troupe.command({ command: 'abort', turn: 'c1:bo:1' }, UMA);
    });
    const text = await ask(stage);
    expect(text.split('Once').length - 1).toBe(1);
    expect(text).toContain(SAID);
    expect(text).not.toContain('void');
  });
