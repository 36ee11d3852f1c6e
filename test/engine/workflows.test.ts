import { expect, test } from 'vitest';
import { parseTroupe, type TroupeInput } from '../../src/library/config/agents-file.ts';
import type { Command, Event } from '../../src/events/index.ts';
import { createApp } from '../../src/http/api/index.ts';
import { asks, breaks, inOrder, says, shown, times, type TestModel } from '../support/engine-models.ts';
import { ANA, openStage, type Stage, type StageAgent } from '../support/engine-stage.ts';
import { only } from '../support/steer-stage.ts';

type Run = Extract<Command, { command: 'run' }>;

const RELEASE = {
  id: 'release',
  directive: 'ship version 2',
  steps: [
    { id: 'plan', agent: 'bo', brief: 'write the plan' },
    { id: 'draft', agent: 'cy', brief: 'write the draft' },
    { id: 'check', agent: 'bo', brief: 'check the draft' },
  ],
};

function crew(bo: TestModel, cy: TestModel, tools: string[] = []): StageAgent[] {
  return [
    { id: 'bo', model: bo, tools },
    { id: 'cy', model: cy, tools },
    { id: 'di', model: inOrder(says('from di')) },
  ];
}

function stageOf(agents: StageAgent[], workflow: object = RELEASE): Promise<Stage> {
  return openStage({ agents, workflows: [workflow] as TroupeInput['workflows'] });
}

function begin(stage: Stage, more: Partial<Run> = {}): Promise<Event> {
  const command = { command: 'run', conversation: 'c', workflow: 'release', run: 'r1', ...more } as Run;
  return stage.troupe.command(command, ANA);
}

/** The course of a run in the log: its steps with their ends. */
async function course(stage: Stage): Promise<string[]> {
  return only(await stage.events('c'), 'run.directive').map(
    ({ body }) => `${body.step?.number}.${body.step?.attempt} ${body.status}`,
  );
}

async function asked(stage: Stage): Promise<string[]> {
  const messages = only(await stage.events('c'), 'message');
  return messages.flatMap(({ author, to, body }) =>
    author.kind === 'system' ? [`${to.join()}: ${body.content}`] : [],
  );
}

async function state(stage: Stage) {
  return stage.troupe.state('c');
}

test('a run asks one agent after the other, each once, and returns to the earlier mode', async () => {
  const bo = inOrder(says('the plan'), says('it is fine'));
  const cy = inOrder(says('the draft'));
  const stage = await stageOf(crew(bo, cy));
  await stage.say('c', 'hello', ['di']);
  await stage.quiet();
  await stage.troupe.command({ command: 'mode', conversation: 'c' as never, mode: 'chat' }, ANA);
  const begun = await begin(stage);
  expect(begun).toMatchObject({ kind: 'run.directive', author: ANA, body: { run: 'r1', status: 'active' } });
  await stage.quiet();
  expect(await course(stage)).toEqual(['1.1 active', '2.1 active', '3.1 active', '3.1 completed']);
  expect(await asked(stage)).toEqual([
    'bo: Step 1 of 3 (plan): write the plan',
    'cy: Step 2 of 3 (draft): write the draft',
    'bo: Step 3 of 3 (check): check the draft',
  ]);
  // The message that it answers is the brief: it is told once.
  expect(shown(cy.requests[0])).toContain('run: r1: ship version 2 (step 2 of 3 is yours)');
  expect(shown(cy.requests[0]).match(/write the draft/g)).toHaveLength(1);
  expect(shown(cy.requests[0])).toContain('the plan');
  expect([bo.requests.length, cy.requests.length]).toEqual([2, 1]);
  expect(await state(stage)).toMatchObject({ state: 'open.chat', mode: 'chat' });
  expect(await stage.check('c')).toEqual([]);
  // Repeats the command whose answer was lost: nothing happens twice.
  expect(await begin(stage)).toEqual(begun);
  await stage.quiet();
  expect(await course(stage)).toHaveLength(4);
});

test('its position is shown over HTTP while a step is active', async () => {
  const stage = await stageOf(crew(inOrder(says('the plan')), inOrder(asks(['ask_people', {}]), says('x'))));
  const app = createApp(stage.troupe, {});
  const body = JSON.stringify({
    command: 'run',
    conversation: 'c',
    workflow: 'release',
    run: 'r1',
    directive: 'ship 3',
    author: ANA,
  });
  const headers = { 'content-type': 'application/json' };
  expect((await app.request('/api/commands', { method: 'POST', body, headers })).ok).toBe(true);
  const shownState = await (await app.request('/api/conversations/c')).json();
  expect(shownState).toMatchObject({
    state: 'open.run',
    mode: 'run',
    run: {
      run: 'r1',
      directive: 'ship 3',
      brief: 'write the plan',
      status: 'active',
      step: { workflow: 'release', number: 1, of: 3, id: 'plan', agent: 'bo', attempt: 1 },
    },
  });
  expect(JSON.stringify(shownState)).not.toContain('write the draft');
  await stage.quiet();
});

test('a step is not over while its agent waits for a task', async () => {
  const bo = inOrder(asks(['delegate', { to: 'di', task: 'look it up' }]), says('the plan'), says('fine'));
  const cy = inOrder(says('the draft'));
  const stage = await stageOf(crew(bo, cy, ['delegate']));
  await begin(stage);
  await stage.quiet();
  const events = await stage.events('c');
  const second = only(events, 'run.directive')[1];
  const end = only(events, 'delegation.ended')[0];
  expect(second?.seq).toBeGreaterThan(end?.seq ?? Infinity);
  expect(await course(stage)).toEqual(['1.1 active', '2.1 active', '3.1 active', '3.1 completed']);
  expect(await stage.check('c')).toEqual([]);
});

test('a step handed off is over when the other agent has done it', async () => {
  const bo = inOrder(asks(['handoff', { to: 'di', goal: 'write the plan' }]), says('fine'));
  const stage = await stageOf(crew(bo, inOrder(says('the draft')), ['handoff']));
  await begin(stage);
  await stage.quiet();
  const events = await stage.events('c');
  const reply = only(events, 'message').find(({ author }) => author.id === 'di');
  expect(only(events, 'run.directive')[1]?.seq).toBeGreaterThan(reply?.seq ?? Infinity);
  expect(await course(stage)).toHaveLength(4);
});

test('a step that ends by tool continues over several turns until the tool is called', async () => {
  const steps = RELEASE.steps.map((step) => ({ ...step, completeWhen: 'tool' }));
  const bo = inOrder(says('which one?'), asks(['complete_step', {}]), says('the plan'), says('again?'));
  const cy = inOrder(asks(['complete_step', {}]), says('the draft'));
  const stage = await stageOf(crew(bo, cy, ['complete_step']), { ...RELEASE, steps });
  await begin(stage);
  await stage.quiet();
  expect(await course(stage)).toEqual(['1.1 active']);
  await stage.say('c', 'the second', ['bo']);
  await stage.quiet();
  expect(await course(stage)).toEqual(['1.1 active', '2.1 active', '3.1 active']);
});

test('a failed turn fails the run visibly, and it continues from the step that a person names', async () => {
  const cy = inOrder(breaks('provider_auth'), says('the draft'));
  const bo = inOrder(says('the plan'), says('fine'));
  const stage = await stageOf(crew(bo, cy));
  await begin(stage);
  await stage.quiet();
  expect(await course(stage)).toEqual(['1.1 active', '2.1 active', '2.1 failed']);
  expect(await state(stage)).toMatchObject({
    mode: 'run',
    run: {
      status: 'failed',
      step: { id: 'draft' },
      reason: expect.stringContaining('provider_auth'),
      goOn: expect.stringContaining('troupe run c release --run r1 --step draft'),
    },
  });
  await expect(begin(stage, { step: 'nothing' })).rejects.toMatchObject({ code: 'command_refused' });
  await begin(stage, { step: 'draft' });
  await stage.quiet();
  expect(await course(stage)).toEqual([
    '1.1 active',
    '2.1 active',
    '2.1 failed',
    '2.2 active',
    '3.2 active',
    '3.2 completed',
  ]);
  expect(await state(stage)).toMatchObject({ mode: 'agent' });
  await expect(begin(stage, { step: 'plan' })).rejects.toMatchObject({ code: 'command_refused' });
  expect(await stage.check('c')).toEqual([]);
});

test('a run fails if the agent of its next step has left', async () => {
  const stage = await stageOf(crew(inOrder(says('the plan')), inOrder(says('the draft'))));
  await stage.say('c', 'hello', ['di']);
  await stage.quiet();
  await stage.troupe.command({ command: 'leave', conversation: 'c' as never, agent: 'cy' as never }, ANA);
  await begin(stage);
  await stage.quiet();
  expect((await course(stage)).at(-1)).toBe('2.1 failed');
  await expect(begin(stage, { step: 'draft' })).rejects.toMatchObject({ code: 'command_refused' });
  await stage.troupe.command({ command: 'join', conversation: 'c' as never, agent: 'cy' as never }, ANA);
  await begin(stage, { step: 'draft' });
  await stage.quiet();
  expect((await course(stage)).at(-1)).toBe('3.2 completed');
});

test('a step starts its phase, with the outcome of the previous one', async () => {
  const [plan, draft, check] = RELEASE.steps;
  const steps = [
    { ...plan, phase: 'planning' },
    { ...draft, phase: 'writing' },
    { ...check, phase: 'writing' },
  ];
  const cy = inOrder(says('the draft'));
  const stage = await stageOf(crew(inOrder(says('We decided to plan little.'), says('fine')), cy), {
    ...RELEASE,
    steps,
  });
  await begin(stage);
  await stage.quiet();
  expect(only(await stage.events('c'), 'phase.changed').map(({ body }) => body)).toMatchObject([
    { phase: 'planning' },
    {
      phase: 'writing',
      from: 'planning',
      summary: { goal: 'ship version 2', done: 'We decided to plan little.' },
    },
  ]);
  expect(shown(cy.requests[0])).toContain('phase: writing');
  expect(times(shown(cy.requests[0]), 'began the phase writing and ended planning')).toBe(1);
});

test('impossible runs are refused before anything is stored', async () => {
  const stage = await stageOf(crew(inOrder(says('the plan')), inOrder(asks(['nothing', {}]), says('x'))));
  for (const more of [{ workflow: 'nobody' }, { step: 'plan' }, { run: 'other', step: 'plan' }]) {
    await expect(begin(stage, more)).rejects.toMatchObject({ code: 'command_refused' });
  }
  const agent = { kind: 'agent', id: 'bo', name: 'bo' } as const;
  const command = { command: 'run', conversation: 'c' as never, workflow: 'release' } as const;
  await expect(stage.troupe.command(command, agent)).rejects.toMatchObject({ code: 'command_refused' });
  expect(await stage.events('c')).toEqual([]);
  await begin(stage);
  await expect(begin(stage, { run: 'r2' })).rejects.toMatchObject({ code: 'command_refused' });
  await expect(begin(stage, { directive: 'other' })).rejects.toMatchObject({ code: 'command_refused' });
  await expect(stage.say('c', 'mine', ['bo'], 'run:r1:step:2.1')).rejects.toMatchObject({
    code: 'event_conflict',
  });
  await stage.quiet();
});

test('an invalid workflow is refused with the agents file', () => {
  const script = { rules: [{ reply: 'ok' }] };
  const agents = [{ id: 'bo', provider: 'scripted' as const, script }];
  const step = { id: 'one', agent: 'bo', brief: 'go' };
  const workflows = [
    { id: 'w', steps: [step, { ...step, agent: 'nobody' }] },
    { id: 'w', steps: [{ ...step, completeWhen: 'tool' as const }] },
    { id: 'empty', steps: [] },
  ];
  expect(() => parseTroupe({ agents, workflows })).toThrow(
    expect.objectContaining({
      code: 'config_invalid',
      data: {
        problems: [
          expect.stringContaining('workflows[2].steps: a workflow needs at least one step'),
          expect.stringContaining('workflows[0].steps[1].id: "one" is used twice'),
          expect.stringContaining('workflows[0].steps[1].agent: there is no agent "nobody"'),
          expect.stringContaining('workflows[1].id: "w" is used twice'),
          expect.stringContaining('workflows[1].steps[0].completeWhen'),
        ],
      },
    }),
  );
});
