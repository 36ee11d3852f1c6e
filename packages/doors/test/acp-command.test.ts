import { spawn } from 'node:child_process';
import { Readable, Writable } from 'node:stream';
import {
  client,
  methods,
  ndJsonStream,
  type NewSessionRequest,
  PROTOCOL_VERSION,
} from '@agentclientprotocol/sdk';
import { expect, test } from 'vitest';
import { CLI, workplace } from '../../../test/cli/harness.ts';

const AGENTS = {
  agents: [
    {
      id: 'bo',
      provider: 'scripted',
      model: 'test',
      script: { rules: [{ reply: 'answer {{n}}', chunk: 3 }] },
    },
  ],
};

/** An editor that starts `troupe acp`, sends a prompt in a new session, or in the given one, and leaves. */
async function edit(dir: string, words: string, loaded?: string) {
  const child = spawn(process.execPath, [CLI, 'acp', '--as', 'Ana'], {
    cwd: dir,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const exited = new Promise((resolve) => child.on('close', resolve));
  const said: string[] = [];
  const connection = client({ name: 'editor' })
    .onNotification(methods.client.session.update, ({ params: { update } }) => {
      if ('content' in update && !Array.isArray(update.content) && update.content?.type === 'text')
        said.push(`${update.sessionUpdate}: ${update.content.text}`);
    })
    .connect(
      ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>),
    );
  const editor = connection.agent;
  const started = await editor.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: {},
  });
  const where: NewSessionRequest = { cwd: dir, mcpServers: [] };
  if (loaded !== undefined) await editor.request(methods.agent.session.load, { sessionId: loaded, ...where });
  const opened = loaded === undefined ? await editor.request(methods.agent.session.new, where) : null;
  const sessionId = opened?.sessionId ?? loaded ?? '';
  await editor.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: 'text', text: words }] });
  child.stdin.end();
  expect(await exited).toBe(0);
  return { agent: started.agentInfo?.name, sessionId, said };
}

test('an editor starts the command, leaves it, and finds its session again', async () => {
  using place = workplace({ agents: AGENTS });
  const first = await edit(place.dir, 'Hello');
  expect(first.agent).toBe('troupe');
  expect(first.said.map((each) => each.split(': ')[1]).join('')).toBe('answer 1');
  const second = await edit(place.dir, 'And now?', first.sessionId);
  expect(second.said.slice(0, 2)).toEqual([
    'user_message_chunk: Hello',
    'agent_message_chunk: **bo:** answer 1',
  ]);
  expect(
    second.said
      .slice(2)
      .map((each) => each.split(': ')[1])
      .join(''),
  ).toBe('answer 2');
});

test('a directory that another process has open is refused with what to do', async () => {
  using place = workplace({ agents: AGENTS });
  await using _dev = await place.dev();
  const { code, err } = await place.run(['acp']);
  expect(code).not.toBe(0);
  expect(err).toMatch(/the data directory is open at http:\/\/127\.0\.0\.1:\d+: stop that process/);
});
