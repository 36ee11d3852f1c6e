import { Verdict } from '../../../../examples/code-review/agents.ts';
import { lead, performance, security, style } from '../../../../examples/code-review/scripts.ts';
import { agent, company, instructions, type Mutant, withTool, without } from './mutant.ts';

const REVIEWS = 'three reviewers are given the whole diff in one turn';
const FOLLOW_UP = 'the lead follows up once, with security, after all have reported';
const VERDICT = 'there is one verdict: changes are requested, with a finding of each field';
const FIELDS = 'each reviewer knows its own field, and no other';
const WOKEN = 'the lead is woken, with the diff';

export const MUTANTS: readonly Mutant[] = [
  {
    breaks: 'prompt',
    what: 'the lead is not told to give the whole diff',
    change: instructions('lead', ' They see their task alone: give each the whole diff in it.'),
    caughtBy: 'the lead knows that a reviewer sees its task alone',
  },
  {
    breaks: 'prompt',
    what: 'the lead follows up with everybody',
    change: instructions('lead', 'follow up once with whoever has found the most serious thing', 'follow up'),
    caughtBy: 'the lead knows that it follows up once, with whom',
  },
  {
    breaks: 'prompt',
    what: 'security reviews style',
    change: instructions('security', 'Your field is security.', 'Your field is style.'),
    caughtBy: FIELDS,
  },
  {
    breaks: 'prompt',
    what: 'performance has two fields',
    change: instructions('performance', 'Your field is', 'Your field is style. Your field is'),
    caughtBy: FIELDS,
  },
  {
    breaks: 'prompt',
    what: 'findings of style have no line',
    change: instructions('style', /each finding with the line it is about and a\s+fix, /),
    caughtBy: 'each reviewer knows that a finding has its line and a fix',
  },
  {
    breaks: 'prompt',
    what: 'the roster does not say what security does',
    change: agent('security', () => ({ description: '' })),
    caughtBy: 'the lead knows who reviews what',
  },
  {
    breaks: 'tool',
    what: 'the lead cannot delegate',
    change: without('lead', 'delegate'),
    caughtBy: REVIEWS,
  },
  {
    breaks: 'tool',
    what: 'the lead cannot follow up',
    change: without('lead', 'follow_up'),
    caughtBy: FOLLOW_UP,
  },
  {
    breaks: 'tool',
    what: 'the lead has no list',
    change: without('lead', 'todo'),
    caughtBy: 'the list of the lead has no open items when it answers',
  },
  {
    breaks: 'tool',
    what: 'a reviewer can delegate',
    change: withTool('style', 'delegate'),
    caughtBy: 'a reviewer asks nobody else',
  },
  {
    breaks: 'tool',
    what: 'the verdict is a text',
    change: agent('lead', () => ({ reply: undefined })),
    caughtBy: VERDICT,
  },
  {
    breaks: 'tool',
    what: 'a verdict has no findings',
    change: agent('lead', () => ({ reply: Verdict.omit({ findings: true }) })),
    caughtBy: VERDICT,
  },
  {
    breaks: 'routing',
    what: 'style answers what names nobody',
    change: company({ defaults: { respondWhenUnaddressed: 'style' } }),
    caughtBy: WOKEN,
  },
  { breaks: 'routing', what: 'nobody answers', change: company({ defaults: {} }), caughtBy: WOKEN },
  {
    breaks: 'routing',
    what: 'performance has another address',
    change: agent('performance', () => ({ id: 'speed' })),
    models: { lead, security, style, speed: performance },
    caughtBy: REVIEWS,
  },
  {
    breaks: 'limit',
    what: 'a review may take a day',
    change: company({ limits: {} }),
    caughtBy: 'a review ends after ten minutes at most',
  },
];
