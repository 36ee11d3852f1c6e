import { expect, test } from 'vitest';
import { forever, tapDriver } from '../support/engine-driver.ts';
import { modelOf, says } from '../support/engine-models.ts';
import { ANA, openStage, turns } from '../support/engine-stage.ts';
import { openDriver } from '../support/mode.ts';
import { only } from '../support/steer-stage.ts';

const WORKFLOWS = [
  {
    id: 'release',
    directive: 'ship it',
    steps: [
      { id: 'plan', agent: 'bo', brief: 'write the plan', phase: 'planning' },
      { id: 'draft', agent: 'cy', brief: 'write the draft', phase: 'writing' },
      { id: 'check', agent: 'bo', brief: 'check the draft' },
    ],
  },
];

/** The process crashes at its `at`th store operation; the person repeats the command. */
async function playUntil(at: number) {
  const driver = await openDriver();
  const model = modelOf(async function* ({ trace }) {
    yield* says(`words of ${trace.turn}`);
  });
  const agents = ['bo', 'cy'].map((id) => ({ id, model }));
  let count = 0;
  let dead = false;
  const mortal = tapDriver(driver, () => {
    dead ||= ++count === at;
    return dead ? forever() : undefined;
  });
  const command = {
    command: 'run',
    conversation: 'c' as never,
    workflow: 'release',
    run: 'r1',
  } as const;
  const first = await openStage({ driver: mortal, agents, workflows: WORKFLOWS });
  void first.troupe.command(command, ANA);
  for (let still = 0; !dead && still < 5;) {
    const { waiting, active, delayed } = await first.troupe.queues();
    still = count > 0 && waiting + active + delayed === 0 ? still + 1 : 0;
    await turns();
  }
  const next = await openStage({ driver, agents, workflows: WORKFLOWS });
  const alone = (await next.events('c')).length;
  await next.troupe.command(command, ANA);
  for (const agent of ['bo', 'cy'])
    await next.deps.router.wake({
      tenant: 'default' as never,
      conversation: 'c' as never,
      agent: agent as never,
    });
  await next.quiet();
  return { died: dead, alone, stage: next, events: await next.events('c') };
}

test('wherever the process dies, each step is asked and done once, and the run ends', async () => {
  let points = 0;
  for (let at = 1; ; at++) {
    const { died, alone, stage, events } = await playUntil(at);
    const seen = events.flatMap((event) => {
      if (event.kind === 'message')
        return [`${event.to.join()}<${event.author.kind}: ${event.body.content.slice(0, 11)}`];
      if (event.kind === 'phase.changed') return [event.body.phase];
      if (event.kind === 'mode.changed') return [event.body.mode];
      return event.kind === 'run.directive' ? [`${event.body.step?.id} ${event.body.status}`] : [];
    });
    expect(seen, `killed at ${at}`).toEqual([
      'run',
      'planning',
      'plan active',
      'bo<system: Step 1 of 3',
      '<agent: words of c:',
      'writing',
      'draft active',
      'cy<system: Step 2 of 3',
      '<agent: words of c:',
      'check active',
      'bo<system: Step 3 of 3',
      '<agent: words of c:',
      'check completed',
      'agent',
    ]);
    expect(only(events, 'turn.done')).toHaveLength(3);
    expect(await stage.check('c')).toEqual([]);
    expect((await stage.troupe.state('c')).mode).toBe('agent');
    await stage.driver.close();
    points += 1;
    if (died) continue;
    expect(alone).toBe(events.length);
    break;
  }
  expect(points).toBeGreaterThan(50);
});
