import type { ConversationRun, RunUser } from './conversation-run.ts';
import { isWhat, isWho, patternWords, type What, type Who, whoWords } from './pattern.ts';
import { report, type Verdict } from './verdict.ts';

/** Whether a simulated user has reached its goal, as it says. `why`: how it knows. */
export function judgeGoal(run: ConversationRun, who: Who, why?: What): Verdict {
  const meant = run.users.filter((user) => isWho(who, user));
  const pass = meant.some(
    ({ outcome }) => outcome.kind === 'reached' && (why === undefined || isWhat(why, outcome.why)),
  );
  const because = why === undefined ? '' : `, because of ${patternWords(why)}`;
  const found = meant.length > 0 ? meant.map(endOf).join('; ') : 'no such user is simulated';
  const expected = `expected that ${whoWords(who)} ${pass ? 'has not reached' : 'has reached'} the goal${because}. ${found}`;
  return { pass, message: () => report(run, expected, []) };
}

function endOf({ name, outcome, moves }: RunUser): string {
  return `${name}, after ${moves} moves: ${outcome.kind}, ${outcome.why}`;
}
