import { describe, expect, test } from 'vitest';
import { collectFacts } from '../../src/context/extract/facts.ts';
import { DEFAULT_POLICY, extractCompaction, summaryCompaction } from '../../src/context/index.ts';
import { renderCompaction } from '../../src/context/compaction/apply.ts';
import { countTokens } from '../../src/context/budget/tokens.ts';
import { NOBODY } from '../../src/context/text/people.ts';
import type { AgentId, CompactionBody, Event } from '../../src/events/index.ts';
import { agentSays, at, personSays } from '../support/extract-events.ts';

const demandsOf = (...events: Event[]) => collectFacts(at(events), null).constraints.map(({ text }) => text);
const between = [agentSays('The table is written.'), personSays('The harbour had nine ships today.')];

function byBen(text: string): Event {
  return { ...personSays(text), author: { kind: 'user', id: 'ben', name: 'Ben' } };
}

describe('a newer word takes the place of an older one of the same person', () => {
  test.each([
    ['Use port 8080 for the server.', 'No, not 8080: 9090.'],
    ['Use port 8080 for the server.', 'Sorry, make that 9090.'],
    ['Use port 8080 for the server.', 'Actually, the server port is 9090.'],
    ['Never answer in English.', 'English is fine.'],
    ['Never drop that table.', 'Drop that table now.'],
    ["Don't use PHP.", 'You can use PHP after all.'],
    ['The budget is 4000 euros.', 'The budget is 5000 euros now.'],
    ['The deadline is Friday.', 'The deadline is Monday instead of Friday.'],
    ['Bitte nie auf Englisch antworten.', 'Englisch ist doch in Ordnung.'],
    ["N'utilise jamais le port 8080.", 'Le port 8080 est permis maintenant.'],
    ['Nunca borres la tabla de clientes.', 'Ahora puedes borrar la tabla de clientes.'],
    ['Use apenas o servidor antigo.', 'Não, o servidor novo em vez do antigo.'],
    ['Non usare mai la porta 8080.', 'La porta 8080 va bene.'],
    ['Никогда не удаляй таблицу.', 'Таблицу можно удалить.'],
    ['不要用英文回答。', '英文也可以。'],
    ['英語で答えないでください。', '英語でもいいです。'],
    ['Never answer in English.', 'On reflection, English is fine.'],
    ["Don't mention prices.", "I don't mind if you mention prices now."],
    ['Ruf Orion auf keinen Fall an.', 'Du darfst Orion jetzt anrufen.'],
    ['Nicht mehr als 20 Zeilen.', 'Lieber 30 als 20.'],
    ['Pas plus de 20 lignes.', 'Plutôt 30 que 20.'],
    ['No llames a Orion.', 'Ya puedes llamar a Orion.'],
    ['Non cancellare mai la tabella.', 'Adesso puoi cancellare la tabella.'],
    ['Не более 20 строк.', 'Точнее, 30 вместо 20.'],
    ['不要给客户打电话。', '给客户打电话没关系了。'],
    ['この表は削除しないでください。', 'この表を削除してもいいです。'],
    ['Nunca ligue para o cliente.', 'Por mim você pode ligar para o cliente.'],
    ['Verwijder de tabel nooit.', 'Je mag de tabel nu verwijderen.'],
    ['Nie usuwaj tabeli.', 'Teraz możesz usuwać tabelę.'],
    ['Asla tabloyu silme.', 'Artık tabloyu silebilirsin.'],
    ['Không được xóa bảng này.', 'Bây giờ có thể xóa bảng này.'],
    ['لا تحذف الجدول.', 'يمكنك حذف الجدول الآن.'],
    ['אל תמחק את הטבלה.', 'עכשיו אפשר למחוק את הטבלה.'],
    ['표를 절대 삭제하지 마세요.', '표는 이제 삭제해도 괜찮습니다.'],
    ['तालिका मत हटाना।', 'अब तालिका हटा सकते हैं।'],
  ])('"%s" by "%s"', (older, newer) => {
    expect(demandsOf(personSays(older), ...between, personSays(newer))).toEqual([newer]);
  });

  test('and the last of three corrections is the one that is left', () => {
    const said = ['Use port 8080.', 'No, not 8080: 9090.', 'Sorry, 7070 it is.', 'Actually, make it 6060.'];
    expect(demandsOf(...said.flatMap((text) => [personSays(text), ...between]))).toEqual([said[3]]);
  });

  test('and what is said again after that is the newest again', () => {
    const said = ['Never answer in English.', 'Never answer in French.', 'Never answer in English.'];
    expect(demandsOf(...said.map((text) => personSays(text)))).toEqual([said[1], said[2]]);
  });
});

describe('where it is not certain, both stay, the newest last', () => {
  test.each([
    ['Never answer in English.', 'English is fine for the comments.'],
    ['Only write to docs/.', 'You may also write to src/.'],
    ['Never delete the backups.', 'You may delete the old logs now.'],
    ['Never use tabs.', 'Use tabs only in makefiles now.'],
    ['We need every page to be signed.', 'No, the page should be grey, no need for blue.'],
    ['Never delete the backups.', 'The backups are fine.'],
    ['Never deploy on Fridays.', 'You can deploy now.'],
    ['Never delete branches of others.', 'You can delete that branch.'],
    ['Never call customers after 6 pm.', 'You can call the customer now.'],
    ['Never spend more than 500 euros.', 'You can spend 500 euros.'],
    ['Never share customer data with the press.', 'Customer data is fine now.'],
    ['Never merge without two approvals.', 'You can merge now, there are two approvals.'],
    ['Never restart the server during office hours.', 'Restart the server now.'],
    ['Only Dana may approve payments.', 'You can approve payments now.'],
    ['Niemals freitags deployen.', 'Du kannst jetzt deployen.'],
    ['周五绝不要部署。', '现在可以部署了。'],
    ['金曜日にはデプロイしないでください。', '今はデプロイしてもいいです。'],
    ['Never call customers on Fridays.', 'It is fine to call customers now.'],
    ['Never push to main.', 'Pushing is fine.'],
    ['Never store passwords in logs.', 'Logs are fine now.'],
    ['Niemals Kundendaten an Partner geben.', 'Kundendaten sind jetzt in Ordnung.'],
    ['Не удаляй таблицы по пятницам.', 'Теперь таблицы можно удалить.'],
    ['금요일에는 고객에게 전화하지 마세요.', '이제 고객에게 전화해도 됩니다.'],
  ])('"%s" and "%s"', (older, newer) => {
    const demands = demandsOf(personSays(older), ...between, personSays(newer));
    expect(demands[0]).toBe(older);
    expect(demands.slice(1)).toEqual([newer]);
  });

  test('when somebody else says it', () => {
    const demands = demandsOf(personSays('Never answer in English.'), byBen('English is fine.'));
    expect(demands).toContain('Never answer in English.');
  });

  test('and talk about other things changes nothing', () => {
    const ban = 'Never delete the backups.';
    expect(
      demandsOf(personSays(ban), personSays('The weather is fine.'), personSays('I am fine now.')),
    ).toEqual([ban]);
    const limit = 'Prices never go over 100.';
    expect(demandsOf(personSays(limit), personSays("Thankfully it's over now."))).toEqual([limit]);
  });
});

test.each([undefined, '## Work\nAll is well.'])(
  'a word taken back is gone after five compactions (summary: %s)',
  (summary) => {
    let body: CompactionBody | null = null;
    for (let round = 0; round < 5; round += 1) {
      const events = [...between, ...between, ...between];
      if (round === 0) events.unshift(personSays('Never answer in English.'));
      if (round === 1) events.push(personSays('English is fine.'));
      const base: Parameters<typeof extractCompaction>[0] = {
        number: round + 1,
        upTo: (round + 1) * 10,
        reason: 'over_budget' as const,
        by: 'coder' as AgentId,
        before: Infinity,
        budget: 600,
        events: at(events, 1 + round * 10),
        previous: body,
        policy: DEFAULT_POLICY,
        secret: 's',
        people: NOBODY,
        count: countTokens,
      };
      body = summary === undefined ? extractCompaction(base) : summaryCompaction({ ...base, text: summary });
    }
    expect(body && renderCompaction(body, 's')).toContain('English is fine.');
    expect(body?.facts.constraints.map(({ text }) => text)).toEqual(['English is fine.']);
  },
);
