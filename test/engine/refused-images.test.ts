import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import type { AgentInput } from '../../src/library/config/agent-input.ts';
import type { AgentId, Author, ConversationId, TurnId } from '../../src/events/index.ts';
import {
  type FakeHandler,
  type FakeReply,
  type FakeServer,
  startFakeAnthropic,
  startFakeOpenAi,
} from '../../packages/testing/src/fake-vendors.ts';
import type { Troupe } from '../../src/library/troupe.ts';
import { openTroupe } from '../support/mode.ts';
import { PICTURES, pngNumber } from '../support/pictures.ts';

const ANA: Author = { kind: 'user', id: 'ana', name: 'Ana' };
const CHART = { name: 'chart.png', ...PICTURES.png };
const { data: CHART_DATA } = CHART;
const REFUSED = '[image 1 of this message is not shown: the server of this model refused it]';

type Kind = 'anthropic' | 'openai-compatible';

function agentOn(server: FakeServer, kind: Kind, more: Partial<AgentInput> = {}): AgentInput {
  const settings = { model: 'm', baseUrl: server.url, contextWindow: 100_000 };
  const agent =
    kind === 'anthropic'
      ? { provider: kind, ...settings }
      : { provider: kind, ...settings, quirks: { images: true } };
  return { id: 'bo' as AgentId, ...agent, ...more } as AgentInput;
}

function start(kind: Kind, handler: FakeHandler): Promise<FakeServer> {
  return kind === 'anthropic' ? startFakeAnthropic(handler) : startFakeOpenAi(handler);
}

const open = (agents: AgentInput[], data?: string) =>
  openTroupe(
    { agents },
    {
      env: { OPENAI_API_KEY: 'k', ANTHROPIC_API_KEY: 'k' },
      onWarning: () => undefined,
      ...(data !== undefined && { data }),
    },
  );

const shows = (body: unknown, data: string) => JSON.stringify(body).includes(data);
const refusal = (status: number, body: unknown): FakeReply => ({
  raw: { status, headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) },
});
const openAi = (message: string, code: string | null = null) => ({
  error: { message, type: 'invalid_request_error', code, param: null },
});

/** Refuses every request that shows the picture, and answers all others. */
const refusing =
  (reply: FakeReply, data: string = CHART_DATA): FakeHandler =>
  ({ body }) =>
    shows(body, data) ? reply : { text: 'Hello.' };

async function say(troupe: Troupe, content: string, more: object = {}, room = 'c') {
  return troupe.ask(room, { author: ANA, to: ['bo'], content, ...more });
}

/** How vendors word the refusal of a picture, from their documentation and from reports. */
const REFUSALS: [name: string, kind: Kind, status: number, body: unknown][] = [
  [
    'Anthropic: too many bytes',
    'anthropic',
    400,
    {
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'messages.0.content.0.image.source.base64: image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes',
      },
    },
  ],
  [
    'Anthropic: broken',
    'anthropic',
    400,
    { type: 'error', error: { type: 'invalid_request_error', message: 'Could not process image' } },
  ],
  [
    'Anthropic: the whole request',
    'anthropic',
    413,
    { type: 'error', error: { type: 'request_too_large', message: 'Request exceeds the maximum size' } },
  ],
  [
    'OpenAI: unsupported',
    'openai-compatible',
    400,
    openAi(
      'You uploaded an unsupported image. Please make sure your image has of one the following formats: png, jpeg.',
      'invalid_image_format',
    ),
  ],
  [
    'OpenAI: policy',
    'openai-compatible',
    400,
    openAi('Your input image may contain content that is not allowed.', 'content_policy_violation'),
  ],
  [
    'Azure: a filter that names nothing',
    'openai-compatible',
    400,
    openAi(
      "The response was filtered due to the prompt triggering Azure OpenAI's content management policy.",
      'content_filter',
    ),
  ],
  [
    'Gemini: unreadable',
    'openai-compatible',
    400,
    [{ error: { code: 400, message: 'Unable to process input image.', status: 'INVALID_ARGUMENT' } }],
  ],
  [
    'Gemini: no cause',
    'openai-compatible',
    400,
    [{ error: { code: 400, message: 'Request contains an invalid argument.', status: 'INVALID_ARGUMENT' } }],
  ],
  [
    'Groq: the whole request',
    'openai-compatible',
    413,
    {
      error: {
        message: 'Request Entity Too Large',
        type: 'invalid_request_error',
        code: 'request_too_large',
      },
    },
  ],
  [
    'DeepSeek: unknown field',
    'openai-compatible',
    400,
    openAi(
      'Failed to deserialize the JSON body into the target type: messages[1]: unknown variant `image_url`, expected `text`',
    ),
  ],
  [
    'OpenRouter: no endpoint',
    'openai-compatible',
    404,
    { error: { message: 'No endpoints found that support image input', code: 404 } },
  ],
  [
    'vLLM: a model of words',
    'openai-compatible',
    400,
    openAi('m is not a multimodal model', 'BadRequestError'),
  ],
  [
    'llama.cpp: a model of words',
    'openai-compatible',
    500,
    {
      error: {
        code: 500,
        message: 'image input is not supported - hint: you may need to provide the mmproj',
        type: 'server_error',
      },
    },
  ],
  [
    'Ollama: unknown format',
    'openai-compatible',
    500,
    openAi('failed to process inputs: image: unknown format', 'api_error'),
  ],
  ['a proxy: no words at all', 'openai-compatible', 422, {}],
];

describe('a picture that a server refuses', () => {
  test.each(REFUSALS)(
    'is left out at once and from then on, and a line says so (%s)',
    async (_, kind, status, body) => {
      await using server = await start(kind, refusing(refusal(status, body)));
      await using troupe = await open([agentOn(server, kind)]);
      expect(await say(troupe, 'What is this?', { attachments: [CHART] })).toMatchObject({
        outcome: 'answered',
      });
      expect(server.requests.map((each) => shows(each.body, CHART_DATA))).toEqual([true, false]);
      expect(await say(troupe, 'Never mind. Hello?')).toMatchObject({ outcome: 'answered' });
      expect(server.requests).toHaveLength(3);
      for (const sent of server.requests.slice(1)) {
        expect(JSON.stringify(sent.body)).toContain(REFUSED);
        expect(JSON.stringify(sent.body)).toContain('[image: chart.png, image/png, 1 kB]');
      }
      const errors = (await troupe.events('c')).events.filter(({ kind: each }) => each === 'error');
      expect(errors).toMatchObject([
        { body: { message: expect.stringContaining('(sent again without an image)') } },
      ]);
    },
  );

  test('is not sent to that model again in a fork, after a retry, from another conversation, or by another process', async () => {
    const data = mkdtempSync(path.join(tmpdir(), 'troupe-images-'));
    let isDown = false;
    await using server = await start('openai-compatible', ({ body }) => {
      if (shows(body, CHART_DATA)) return refusal(400, openAi('Invalid image.', 'invalid_image'));
      return isDown ? refusal(400, openAi('Invalid value for `metadata`.')) : { text: 'Hello.' };
    });
    {
      await using troupe = await open([agentOn(server, 'openai-compatible')], data);
      await say(troupe, 'What is this?', { attachments: [CHART] });
      const copy = { command: 'fork' as const, turn: 'c:bo:1' as TurnId, as: 'd' as ConversationId };
      await troupe.command(copy, ANA);
      expect(await say(troupe, 'And in a copy?', {}, 'd')).toMatchObject({ outcome: 'answered' });
      await say(troupe, 'And here?', { attachments: [CHART] }, 'e');
      isDown = true;
      expect(await say(troupe, 'Hello?')).toMatchObject({ outcome: 'failed' });
      isDown = false;
      await troupe.command({ command: 'retry', turn: 'c:bo:2' as TurnId }, ANA);
      await troupe.idle();
    }
    {
      await using troupe = await open([agentOn(server, 'openai-compatible')], data);
      expect(await say(troupe, 'Still there?')).toMatchObject({ outcome: 'answered' });
    }
    expect(server.requests.filter(({ body }) => shows(body, CHART_DATA))).toHaveLength(1);
  });

  test('is still shown to an agent whose model takes it, also under the same name on another server', async () => {
    await using blind = await start('openai-compatible', refusing(refusal(400, openAi('Invalid image.'))));
    await using seeing = await start('openai-compatible', () => ({ text: 'A chart.' }));
    await using troupe = await open([
      agentOn(blind, 'openai-compatible'),
      agentOn(seeing, 'openai-compatible', { id: 'cy' as AgentId }),
    ]);
    await say(troupe, 'What is this?', { attachments: [CHART] });
    await troupe.ask('c', { author: ANA, to: ['cy'], content: 'And you?' });
    expect(seeing.requests.map(({ body }) => shows(body, CHART_DATA))).toEqual([true]);
    expect(JSON.stringify(seeing.requests[0]?.body)).not.toContain('refused it');
  });

  test('takes only new pictures with it, not those the model has seen', async () => {
    const bad = pngNumber(2).toString('base64');
    await using server = await start(
      'anthropic',
      refusing(refusal(400, { error: { message: 'Bad image' } }), bad),
    );
    await using troupe = await open([agentOn(server, 'anthropic')]);
    await say(troupe, 'What is this?', { attachments: [CHART] });
    await say(troupe, 'And this?', { attachments: [{ mediaType: 'image/png', data: bad }] });
    await say(troupe, 'Hello?');
    expect(server.requests.map(({ body }) => [shows(body, CHART_DATA), shows(body, bad)])).toEqual([
      [true, false],
      [true, true],
      [true, false],
      [true, false],
    ]);
  });

  test('is not blamed for a request that is refused without it too', async () => {
    let isDown = true;
    await using server = await start('openai-compatible', () =>
      isDown ? refusal(400, openAi('Invalid value for `metadata`.')) : { text: 'Hello.' },
    );
    await using troupe = await open([agentOn(server, 'openai-compatible')]);
    expect(await say(troupe, 'What is this?', { attachments: [CHART] })).toMatchObject({ outcome: 'failed' });
    isDown = false;
    await say(troupe, 'Hello?');
    expect(server.requests.map(({ body }) => shows(body, CHART_DATA))).toEqual([true, false, true]);
  });
});

test('a server that takes one picture is sent the newest', async () => {
  const second = pngNumber(2).toString('base64');
  await using server = await start('openai-compatible', ({ body }) =>
    shows(body, CHART_DATA) && shows(body, second)
      ? refusal(400, openAi('At most 1 image(s) may be provided in one request.'))
      : { text: 'Hello.' },
  );
  await using troupe = await open([agentOn(server, 'openai-compatible')]);
  await say(troupe, 'What is this?', { attachments: [CHART] });
  await say(troupe, 'And this?', { attachments: [{ mediaType: 'image/png', data: second }] });
  expect(server.requests.map(({ body }) => [shows(body, CHART_DATA), shows(body, second)])).toEqual([
    [true, false],
    [true, true],
    [false, true],
  ]);
});

test('a picture that a filter stopped with a refusal is not shown again', async () => {
  await using server = await start('anthropic', ({ body }) =>
    shows(body, CHART_DATA) ? { text: '', stop: 'refusal' } : { text: 'Hello.' },
  );
  await using troupe = await open([agentOn(server, 'anthropic')]);
  expect(await say(troupe, 'What is this?', { attachments: [CHART] })).toMatchObject({ outcome: 'failed' });
  expect(await say(troupe, 'Never mind. Hello?')).toMatchObject({ outcome: 'answered' });
});
