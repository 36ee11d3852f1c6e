/**
 * Parts that are installed and do not work on this machine: a processor may lack an instruction that a program was
 * built with. Their tests are skipped and counted with the reason, in CI too, where a part that is missing is a failure.
 */
export const DOES_NOT_RUN = 'does not run here';

/** Passes the reasons to the tests, by part, as JSON. */
export const UNUSABLE_ENV = 'TROUPE_TEST_UNUSABLE';

/** Why each part that was tried and failed does not work. */
export type Unusable = {
  [part in 'Chromium' | 'Claude Code' | 'Codex' | 'A2A Python SDK' | 'OpenAI Python SDK']?: string;
};

export function unusableParts(env: NodeJS.ProcessEnv = process.env): Unusable {
  return JSON.parse(env[UNUSABLE_ENV] ?? '{}') as Unusable;
}

/** A skipped test that CI must not accept: one whose part is missing. */
export function lacksPart(testName: string): boolean {
  return testName.includes('skipped: no') && !testName.includes(DOES_NOT_RUN);
}
