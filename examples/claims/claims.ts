import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { type Author, createTroupe, type Troupe, type TroupeOptions } from '../../src/index.ts';
import { showEvent } from '../play/show-event.ts';
import { app, troupe as company } from './agents.ts';

const MIA: Author = { kind: 'user', id: 'mia', name: 'Mia' };
const DANA: Author = { kind: 'user', id: 'dana', name: 'Dana' };

/** The company of the second day. In agents.ts it is one line: another `id`, and the former one in `aliases`. */
const renamed = {
  ...company,
  agents: company.agents.map((agent) =>
    agent.id === 'assessor' ? { ...agent, id: 'surveyor', aliases: ['assessor'] } : agent,
  ),
};

/**
 * A claim from the first message to the erasure of the claimant. Throws if something is not as it should be. `where`: options of
 * `createTroupe` that name a data directory or servers.
 */
export async function playClaim(
  where: TroupeOptions,
  print: (line: string) => void = console.log,
): Promise<void> {
  const { claims } = app();
  const options = { ...where, app: { claims } };
  const show = (troupe: Troupe) =>
    troupe.watch((note) => {
      const line = note.type === 'event' ? showEvent(note.event) : null;
      if (line !== null) print(line);
    });

  print('# A photo, two colleagues at work, and a question');
  await using first = await createTroupe(company, options);
  show(first);
  const data = await readFile(path.join(import.meta.dirname, 'photo.png'));
  const asked = await first.ask('claim', {
    author: MIA,
    content: 'Mia Lindqvist, Tollgate Lane: the storm broke our roof window, and the rain came in.',
    attachments: [{ name: 'photo.png', mediaType: 'image/png', data }],
  });
  const { tasks: given } = await first.tasks('claim');
  assert.deepEqual(
    given.map(({ assignee, attachments: [name] = [] }) => [assignee, name]),
    [
      ['assessor', 'photo.png'],
      ['fraud', undefined],
    ],
  );
  await first.close();

  print('# The assessor is renamed, and Mia answers its question');
  await using troupe = await createTroupe(renamed, options);
  show(troupe);
  const [question] = asked.waits;
  assert.equal(question?.task.kind, 'question');
  const content = 'Herringbone parquet, which Grandfather Thorvald laid.';
  const { conversation, task } = question;
  await troupe.command({ command: 'answer', conversation, question: task.id, content }, MIA);
  await troupe.idle();
  const { tasks } = await troupe.tasks('claim');
  assert.equal(tasks[0]?.assignee, 'surveyor');

  print('# Dana decides');
  const request = tasks.find(({ kind }) => kind === 'approval');
  assert.equal(request?.tool, 'pay');
  assert.equal(claims[0]?.paid, 0);
  const { id, argsHash } = request;
  const decision = { approved: true, argsHash, note: 'Thorvald’s parquet is worth it.' };
  await troupe.command({ command: 'decide', conversation: 'claim', request: id, ...decision }, DANA);
  await troupe.idle();
  assert.ok(claims[0].paid > 5_000);

  print('# The writer joins, and has seen nothing so far');
  await troupe.ask('claim', { author: MIA, to: ['letters'], content: 'In writing, please.' });
  const letter = await troupe.promptOf('claim:letters:1');
  const told = letter.messages.map((message) => message.content).join('\n');
  const heads = ['[@surveyor finished a task of @intake', '[Dana approved a call', '[@adjuster called pay'];
  for (const head of heads) assert.ok(told.includes(head), head);

  print('# Mia is erased');
  const receipt = await troupe.erase({ person: 'mia', by: DANA });
  claims.splice(0); // The receipt says so, in `outside`: what tools wrote elsewhere is the application's.
  const left = [JSON.stringify(await troupe.promptOf('claim:letters:1'))];
  for await (const line of troupe.export('claim')) left.push(line);
  assert.doesNotMatch(left.join('\n'), /Lindqvist|Tollgate|storm|Herringbone|Thorvald/i);
  assert.deepEqual((await troupe.verify('claim')).problems, []);
  print(`${receipt.events} events, ${receipt.attachments} photo. Outside: ${receipt.outside.join('; ')}.`);
}
