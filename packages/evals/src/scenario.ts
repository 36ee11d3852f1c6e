import type { ConversationRun } from './conversation-run.ts';
import { MATCHERS } from './matchers.ts';
import { howToOpen } from './show-run.ts';
import type { PlayOptions, Users } from './play-conversation.ts';

/** A claim about a run. It throws if the claim does not hold. Its name tells what is claimed. */
export type Claim = (run: ConversationRun) => void | Promise<void>;

/** Options of one scenario. */
export interface ScenarioOptions extends Omit<PlayOptions, 'data' | 'seed'> {
  /** Whether each scenario also claims that its log is sound and that no turn failed. Default true. */
  sound?: boolean | undefined;
}

/** A conversation and the claims about it. Plain data with functions, which need no test runner. */
export interface Scenario {
  /** Its subject. */
  readonly name: string;
  /** The people. */
  readonly users: Users;
  /** The claims, by name. */
  readonly claims: Readonly<Record<string, Claim>>;
  /** Options of its own. */
  readonly options: ScenarioOptions;
}

/** Adds a scenario: its name, the people, and claims by name, or one claim that has the name of the scenario. */
export type AddScenario = (
  name: string,
  users: Users,
  claims: Readonly<Record<string, Claim>> | Claim,
  options?: ScenarioOptions,
) => void;

const PLAYED = 'the script is played to its end';
const SOUND = 'the log is sound, and no turn failed';

/** The scenarios that `tell` adds, with the claims that all scenarios have. */
export function scenariosOf(tell: (scenario: AddScenario) => void): Scenario[] {
  const scenarios: Scenario[] = [];
  tell((name, users, claims, options = {}) => {
    const own = typeof claims === 'function' ? { [name]: claims } : claims;
    const common = options.sound === false ? {} : { [SOUND]: isSound };
    scenarios.push({ name, users, claims: { [PLAYED]: isPlayed, ...own, ...common }, options });
  });
  return scenarios;
}

function isPlayed(run: ConversationRun): void {
  const { ended, place } = run;
  if (ended.kind === 'done') return;
  throw new Error(`${ended.why}${place ? `\n\n${howToOpen(run, place)}` : ''}`);
}

function isSound(run: ConversationRun): void {
  const isFailed = MATCHERS.toHaveFailed(run, /./);
  for (const { pass, message } of [MATCHERS.toBeSound(run), { ...isFailed, pass: !isFailed.pass }])
    if (!pass) throw new Error(message());
}
