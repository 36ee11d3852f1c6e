import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, test } from 'vitest';
import type { Company } from './company.ts';
import type { ConversationRun } from './conversation-run.ts';
import { discard, playToItsEnd } from './play-conversation.ts';
import { type AddScenario, type Scenario, type ScenarioOptions, scenariosOf } from './scenario.ts';

/** Settings for all scenarios of a company. A scenario's own options take precedence. */
export interface EvalSettings extends ScenarioOptions {
  /** Name of the group of tests. Default: the folder of the agents file, else the ids of the agents. */
  name?: string | undefined;
  /** Scenarios whose data stay on disk for viewing: those that failed, all, or none. Default `failed`. */
  keep?: 'failed' | 'all' | 'none' | undefined;
  /** Longest time of a conversation, ms. Default 60,000. */
  timeoutMs?: number | undefined;
}

/** Scenarios of a company, which can also be tried with another company. */
export interface ConversationEvals {
  /** The company. */
  readonly company: Company;
  /** The scenarios. */
  readonly scenarios: readonly Scenario[];
  /** Plays all scenarios in memory, with another company if one is given, and resolves to the result of each claim. */
  tryWith(company?: Company, settings?: EvalSettings): Promise<ClaimResult[]>;
}

/** The result of a claim. */
export interface ClaimResult {
  /** Name of the scenario. */
  scenario: string;
  /** Name of the claim. */
  claim: string;
  /** The error that it threw. Null: the claim holds. */
  error: Error | null;
}

const MOST_MS = 60_000;

/**
 * Tests of a company of agents: each scenario is played once, and each of its claims is a test.
 *
 *     describeConversation(company, (scenario) => {
 *       scenario('a parcel is late', 'Where is my parcel?', {
 *         'the desk hands over to shipping': (run) => expect(run).toHaveHandedOver('desk', 'shipping'),
 *       });
 *     });
 */
export function describeConversation(
  company: Company,
  tell: (scenario: AddScenario) => void,
  settings: EvalSettings = {},
): ConversationEvals {
  const scenarios = scenariosOf((scenario) =>
    tell((name, users, claims, options) => scenario(name, users, claims, { ...settings, ...options })),
  );
  describe(settings.name ?? nameOf(company), () => {
    for (const scenario of scenarios) describeScenario(company, scenario, settings);
  });
  return {
    company,
    scenarios,
    tryWith: (other = company, changed = {}) => tryScenarios(scenarios, other, changed),
  };
}

function describeScenario(
  company: Company,
  { name, users, claims, options }: Scenario,
  { keep = 'failed', timeoutMs = MOST_MS }: EvalSettings,
): void {
  describe(name, () => {
    let run: ConversationRun | null = null;
    let isFailed = false;
    beforeAll(async () => {
      const data = keep === 'none' ? 'memory' : 'folder';
      run = await playToItsEnd(company, users, { ...options, data });
    }, timeoutMs);
    for (const [words, claim] of Object.entries(claims)) {
      test(words, async () => {
        try {
          await claim(run!);
        } catch (error) {
          isFailed = true;
          throw error;
        }
      });
    }
    afterAll(() => {
      if (run && keep !== 'all' && !isFailed) discard(run.place);
    });
  });
}

async function tryScenarios(
  scenarios: readonly Scenario[],
  company: Company,
  settings: EvalSettings,
): Promise<ClaimResult[]> {
  const results: ClaimResult[] = [];
  for (const { name, users, claims, options } of scenarios) {
    const run = await playToItsEnd(company, users, { ...options, ...settings, data: 'memory' });
    for (const [claim, isHeld] of Object.entries(claims))
      results.push({ scenario: name, claim, error: await errorOf(() => isHeld(run)) });
  }
  return results;
}

async function errorOf(act: () => void | Promise<void>): Promise<Error | null> {
  try {
    await act();
    return null;
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

function nameOf(company: Company): string {
  if (typeof company === 'string') return path.basename(path.dirname(path.resolve(company)));
  if (company instanceof URL) return path.basename(path.dirname(fileURLToPath(company)));
  const agents = 'agents' in company ? company.agents : company;
  return agents.map(({ id }) => id).join(', ');
}
