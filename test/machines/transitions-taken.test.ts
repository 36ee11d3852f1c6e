import { beforeAll, describe, expect, test } from 'vitest';
import { agentLifecycle } from '../../src/machines/agent-lifecycle.ts';
import { availability } from '../../src/machines/availability.ts';
import { compaction } from '../../src/machines/compaction.ts';
import { workflow } from '../../src/machines/workflow.ts';
import { SCENARIOS } from '../support/machine-scenarios.ts';
import {
  arrowsOf,
  nameOf,
  outcomeIn,
  recordMachines,
  takenBy,
  without,
} from '../support/recorded-transitions.ts';

/**
 * The machines decide what the engine does, and every arrow in them is used: behaviour tests run through the real engine
 * here, and whatever it sends to a machine is recorded.
 */
const MACHINES = [agentLifecycle, availability, compaction, workflow];
const recording = recordMachines(MACHINES);

/** Behaviour tests that take the common ways. The query makes them run here too, however often they have run elsewhere. */
const BEHAVIOUR = [
  'pause',
  'membership',
  'compaction',
  'shared-compactions',
  'named-window',
  'workflows',
  'approvals',
  'questions-below',
  'supervision-todos',
  'away-servers',
];

describe('rare transitions', () => {
  test.each(Object.entries(SCENARIOS))('%s', async (_, play) => play());
});

describe.each(BEHAVIOUR)('as scripted in %s', async (name) => {
  await import(`../engine/${name}.test.ts?recorded`);
});

describe.each(MACHINES)('the machine $id', (machine) => {
  beforeAll(() => recording.stop());

  test('has no transition that the engine does not take', () => {
    const taken = new Set(recording.sent.flatMap(takenBy));
    expect(
      arrowsOf(machine)
        .map(nameOf)
        .filter((name) => !taken.has(name)),
    ).toEqual([]);
  });

  test('without any one of its transitions refuses what the engine did, or leads elsewhere', () => {
    const sent = recording.sent.filter((each) => each.machine === machine);
    const unmissed = arrowsOf(machine).filter((arrow) => {
      const crippled = without(machine, arrow);
      return sent.every((each) => outcomeIn(crippled, each) === outcomeIn(machine, each));
    });
    expect(unmissed.map(nameOf)).toEqual([]);
  });
});
