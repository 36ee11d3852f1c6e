import { CONSTRAINTS_HEADING } from './instructions.ts';

const HEADING = /^#{1,6} /;

/**
 * A model's summary without its section of constraints. Where people have spoken whose word does not count, a model may
 * have believed them: then the constraints are those that are listed with their speakers, found without a model.
 */
export function withoutConstraints(summary: string): string {
  let isLeftOut = false;
  const kept = summary.split('\n').filter((line) => {
    if (HEADING.test(line)) isLeftOut = line.toLowerCase().includes(CONSTRAINTS_HEADING);
    return !isLeftOut;
  });
  return kept.join('\n').trim();
}
