import { expect, test } from 'vitest';
import { workplace } from '../../../test/cli/harness.ts';
import { overHttp } from './mcp-client.ts';

const LINES = Array.from({ length: 12 }, (_, i) => `Line ${i + 1} of the story.`);
const AGENTS = {
  doors: ['mcp'],
  agents: [
    {
      id: 'bo',
      provider: 'scripted',
      model: 'test',
      script: { rules: [{ reply: LINES.join('\n'), chunk: 10, chunkDelayMs: 60 }] },
    },
  ],
};
const CALL = {
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: {
    name: 'ask_bo',
    arguments: { message: 'Tell me.', conversation: 'c1' },
    _meta: { progressToken: 'p' },
  },
};

interface Heard {
  lines: string[];
  /** Undefined: the stream broke off, or enough lines have come. */
  result?: { structuredContent: { text: string; id: string } };
}

/** The lines that a call reports until it ends, or until `enough` have come. */
async function heard(url: string, enough = Infinity): Promise<Heard> {
  const response = await fetch(`${url}/api/mcp`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      'idempotency-key': 'story',
    },
    body: JSON.stringify(CALL),
  });
  const lines: string[] = [];
  let rest = '';
  for await (const chunk of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    rest += chunk;
    const frames = rest.split('\n\n');
    rest = frames.pop() ?? '';
    for (const frame of frames) {
      const data = frame.split('\n').find((line) => line.startsWith('data: {'));
      if (data === undefined) continue;
      const { params, result } = JSON.parse(data.slice(6)) as {
        params?: { message: string };
        result?: Heard['result'];
      };
      if (params) lines.push(params.message);
      if (result) return { lines, result };
    }
    if (lines.length >= enough) break;
  }
  return { lines };
}

test('a call whose server was killed in the middle is repeated, and has every word once', async () => {
  using place = workplace({ agents: AGENTS });
  const told = LINES.map((line) => `bo: ${line}`);
  const first = await place.dev(['--data', 'kept']);
  const begun = await heard(first.url, 3);
  expect(begun.result).toBeUndefined();
  expect(told.slice(0, begun.lines.length)).toEqual(begun.lines);
  first.child.kill('SIGKILL');
  await first.exited;
  await using second = await place.dev(['--data', 'kept']);
  const { lines, result } = await heard(second.url);
  expect(lines).toEqual(told);
  expect(result?.structuredContent).toMatchObject({ text: LINES.join('\n'), id: 'c1:1' });
  const client = await overHttp(second.url);
  const again = await client.callTool({ name: 'status', arguments: { id: 'c1:1' } });
  expect(again.structuredContent).toMatchObject({ status: 'answered', text: LINES.join('\n') });
  const { events } = (await (await fetch(`${second.url}/api/conversations/c1/events`)).json()) as {
    events: { kind: string }[];
  };
  expect(events.filter(({ kind }) => kind === 'message')).toHaveLength(2);
});
