import type { Feature } from '../feature.ts';
import { createBudgetLedger } from './ledger.ts';
import { budgetPartsOf, paidCall, placeOf } from './paid-call.ts';
import { budgetReport } from './report.ts';

export const budget: Feature = {
  open(parts) {
    const { caps = {} } = parts;
    const ledger = createBudgetLedger({ ...parts, caps });
    return {
      budget: {
        hasCaps: Boolean(caps.tenant ?? caps.conversation ?? caps.agents),
        pay: (run, call, make) => paidCall(budgetPartsOf(ledger, run), call, placeOf(run), make),
        report: (tenant, of) => budgetReport(ledger, tenant, of),
      },
    };
  },
};
