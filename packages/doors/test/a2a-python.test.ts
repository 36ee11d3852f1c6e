import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { A2A_PYTHON_ENV } from '../../../test/services/a2a-python.ts';
import type { PythonLibrary } from '../../../test/services/python-library.ts';
import { unusableParts } from '../../../test/services/unusable.ts';
import { openStage } from './stage.ts';

const GIVEN = process.env[A2A_PYTHON_ENV];
const UNUSABLE = unusableParts()['A2A Python SDK'];
const WHY_NONE = UNUSABLE === undefined ? '' : ` (${UNUSABLE})`;
const PROGRAM = path.join(import.meta.dirname, 'a2a-client.py');
const NAME =
  "A2A's SDK for Python verifies cards, has tasks whole and streamed, answers questions, and is told what has failed";

test.skipIf(!GIVEN)(GIVEN ? NAME : `${NAME} (skipped: no A2A Python SDK${WHY_NONE})`, async () => {
  const { command, folder } = JSON.parse(GIVEN ?? '') as PythonLibrary;
  const handoff = { calls: [{ name: 'handoff', args: '{"to":"billing","goal":"refund"}' }] };
  await using stage = await openStage(['bo', 'desk', 'billing', 'asker', 'broken'], {
    isKeyed: true,
    agents: {
      desk: { name: 'Büro', description: 'Refunds', tools: ['handoff'] },
      asker: { tools: ['ask'] },
    },
    answers: {
      bo: ['Good day.'],
      desk: [{ text: 'One moment.', ...handoff }],
      billing: ['It is refunded.'],
      asker: [{ calls: [{ name: 'ask', args: '{"question":"Which size?"}' }] }, 'L it is.'],
      broken: () => ({ raw: { status: 401, body: '{}' } }),
    },
  });
  const { secret } = await stage.troupe.keys.create({ name: 'python', scopes: ['read', 'write'] });
  const { stdout } = await promisify(execFile)(command, [PROGRAM, `${stage.url}/api/a2a`, secret], {
    env: { ...process.env, PYTHONPATH: folder },
  });
  expect(JSON.parse(stdout)).toEqual({
    card: ['Büro', 'Refunds', '1.0'],
    signed: [true, false],
    streamed: {
      states: ['TASK_STATE_WORKING', 'TASK_STATE_COMPLETED'],
      texts: ['One moment.', 'It is refunded.'],
    },
    whole: ['TASK_STATE_COMPLETED', ['Good day.']],
    again: true,
    asked: ['TASK_STATE_INPUT_REQUIRED', 'Which size?'],
    answered: [true, 'TASK_STATE_COMPLETED', ['L it is.']],
    failed: ['TASK_STATE_WORKING', 'TASK_STATE_FAILED'],
    unknown: { class: 'TaskNotFoundError', message: expect.stringContaining('c1~1') as string },
    over: { class: 'UnsupportedOperationError', message: expect.stringContaining('has ended') as string },
  });
});
