import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { OPENAI_PYTHON_ENV } from '../../../test/services/openai-python.ts';
import type { PythonLibrary } from '../../../test/services/python-library.ts';
import { unusableParts } from '../../../test/services/unusable.ts';
import { openStage } from './stage.ts';

const ADA = '{"name":"Ada"}';
const FORMS = [
  ADA,
  ADA,
  '{"say":"","calls":[{"name":"Weather","arguments":{"at":"Bern"}}]}',
  '{"say":"Rain.","calls":[]}',
];
const GIVEN = process.env[OPENAI_PYTHON_ENV];
const UNUSABLE = unusableParts()['OpenAI Python SDK'];
const WHY_NONE = UNUSABLE === undefined ? '' : ` (${UNUSABLE})`;
const PROGRAM = path.join(import.meta.dirname, 'openai-client.py');
const NAME =
  "OpenAI's SDK for Python hears agents by both APIs, streamed or not, and is told what has failed";

test.skipIf(!GIVEN)(GIVEN ? NAME : `${NAME} (skipped: no OpenAI Python SDK${WHY_NONE})`, async () => {
  const { command, folder } = JSON.parse(GIVEN ?? '') as PythonLibrary;
  const handoff = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
  await using stage = await openStage(['desk', 'billing', 'clerk', 'broken'], {
    agents: { desk: { name: 'Desk', tools: ['handoff'] }, billing: { name: 'Billing' } },
    answers: {
      desk: [
        { text: 'One moment.', ...handoff },
        { text: 'Once more.', ...handoff },
      ],
      billing: ['It is refunded.', 'It was refunded.'],
      clerk: ['Blue.', 'The sky.', 'Yes.', ...FORMS, 'Uma.', 'Uma, still.'],
      broken: () => ({ text: '', error: { code: 'provider_invalid_request' } }),
    },
  });
  const { stdout } = await promisify(execFile)(
    command,
    [PROGRAM, ...['conversations/c1/v1', 'v1'].map((base) => `${stage.url}/api/${base}`)],
    {
      env: { ...process.env, PYTHONPATH: folder },
    },
  );
  expect(JSON.parse(stdout)).toEqual({
    models: ['troupe', 'desk', 'billing', 'clerk', 'broken'],
    completion: ['One moment.\n\n**Billing:** It is refunded.', 'stop'],
    chunks: ['Once mor', 'e.', '\n\n**Billing:** ', 'It was r', 'efunded.'],
    usage: expect.any(Number) as number,
    responses: ['Blue.', 'The sky.', 'completed'],
    streamed: [['Yes.'], 'Yes.'],
    parsed: ['Ada', 'Ada'],
    called: [{ at: 'Bern' }, 'Rain.'],
    stateless: ['Uma.', 'Uma, still.', true],
    read: ['Blue.', 'Which colour?', 'clerk'],
    unknown: {
      class: 'BadRequestError',
      status: 400,
      code: 'agent_unknown',
      message: expect.stringContaining('nobody') as string,
    },
    failed: {
      class: 'UnprocessableEntityError',
      status: 422,
      code: 'provider_invalid_request',
      message: expect.stringContaining('@broken') as string,
    },
    brokenStream: {
      class: 'APIError',
      status: null,
      code: 'provider_invalid_request',
      message: expect.stringContaining('@broken') as string,
    },
  });
});
