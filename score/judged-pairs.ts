/** Pairs of an older and a newer word of one person, with places for values. `A` and `B` are numbers, `N` a name. */
export const CORRECTION_PAIRS: Readonly<Record<string, readonly (readonly [string, string])[]>> = {
  en: [
    ['Use port A for the N server.', 'No, not A: B.'],
    ['Use port A for N.', 'Sorry, could you make that B, please.'],
    ['Never write to N in English.', 'On reflection, English is fine.'],
    ['Never drop the table N_A.', 'Drop the table N_A now.'],
    ["Please don't call N.", 'It would be okay to call N now.'],
    ['The budget of N is A euros.', 'The budget of N is B euros now.'],
    ["We can't use the N library.", 'You may use the N library after all.'],
    ['At most A rows for N.', 'I meant B rows, not A.'],
  ],
  de: [
    ['Nimm nur Port A für N.', 'Nein, nicht A, sondern B.'],
    ['Bitte nie auf Englisch an N schreiben.', 'Englisch ist doch in Ordnung.'],
    ['Die Tabelle N_A darf nicht gelöscht werden.', 'Die Tabelle N_A kann jetzt gelöscht werden.'],
    ['Höchstens A Zeilen für N.', 'Ich meinte B statt A Zeilen.'],
    ['Ruf N auf keinen Fall an.', 'Du darfst N jetzt anrufen.'],
    ['Verwende niemals die Bibliothek N.', 'Die Bibliothek N ist wieder erlaubt.'],
  ],
  fr: [
    ['Utilise uniquement le port A pour N.', 'Non, pas A mais B.'],
    ["N'écris jamais à N en anglais.", "Finalement, l'anglais est permis."],
    ["N'utilise jamais la bibliothèque N.", 'Tu peux utiliser la bibliothèque N maintenant.'],
    ['Au maximum A lignes pour N.', 'Pardon, B lignes au lieu de A.'],
    ["Il est interdit d'appeler N.", 'On peut appeler N maintenant.'],
  ],
  es: [
    ['Usa solo el puerto A para N.', 'No, B en lugar de A.'],
    ['Nunca borres la tabla N_A.', 'Ahora puedes borrar la tabla N_A.'],
    ['Nunca escribas a N en inglés.', 'Mejor dicho, el inglés está permitido.'],
    ['Como máximo A filas para N.', 'Perdón, quise decir B, no A.'],
    ['No llames a N.', 'Ya puedes llamar a N ahora.'],
  ],
  it: [
    ['Usa solo la porta A per N.', 'No, B invece di A.'],
    ['Non cancellare mai la tabella N_A.', 'Adesso puoi cancellare la tabella N_A.'],
    ['Non scrivere mai a N in inglese.', "L'inglese è permesso adesso."],
    ['Al massimo A righe per N.', 'Scusa, intendevo B, non A.'],
  ],
  ru: [
    ['Используй только порт A для N.', 'Нет, не A, а B.'],
    ['Никогда не удаляй таблицу N_A.', 'Таблицу N_A теперь можно удалить.'],
    ['Никогда не пиши на английском.', 'На английском теперь можно.'],
    ['Не более A строк для N.', 'Точнее, B вместо A.'],
  ],
  zh: [
    ['N 只能使用端口 A。', '不是 A，改成 B。'],
    ['不要删除表 N_A。', '现在可以删除表 N_A 了。'],
    ['不要用英文回答 N。', '英文也可以。'],
    ['N 最多 A 行。', '更正：不是 A，而是 B。'],
  ],
  ja: [
    ['N のポートは必ず A を使ってください。', 'A ではなく B です。'],
    ['表 N_A は絶対に削除しないでください。', '今は表 N_A を削除してもいいです。'],
    ['N には英語で答えないでください。', '英語でもいいです。'],
    ['N は A 行以内にしてください。', '訂正、A ではなく B です。'],
  ],
};

/** A rule, and a permission for one deed or one case, which leaves the rule as it is. */
export const EXCEPTION_PAIRS: readonly (readonly [string, string])[] = [
  ['Never deploy N on Fridays.', 'You can deploy N now.'],
  ['Never call N after A o’clock.', 'You can call N now.'],
  ['Never pay N more than A euros.', 'You can pay N A euros.'],
  ['Never merge N without two approvals.', 'You can merge N now, there are two approvals.'],
  ['Never restart N during office hours.', 'Restart N now.'],
  ['Only N may approve payments.', 'You can approve payments now.'],
  ['Niemals freitags N ausliefern.', 'Du kannst N jetzt ausliefern.'],
  ['Ne jamais appeler N le soir.', 'Tu peux appeler N maintenant.'],
  ['Nunca llames a N por la noche.', 'Ahora puedes llamar a N.'],
  ['Никогда не звони N вечером.', 'Теперь N можно позвонить.'],
  ['周五绝不要部署 N。', '现在可以部署 N 了。'],
  ['金曜日に N をデプロイしないでください。', '今は N をデプロイしてもいいです。'],
];

/** A request, and what replaces it. */
export const GOAL_PAIRS: readonly (readonly [string, string])[] = [
  ['Please write the newsletter about N.', 'Forget that, now we write the tax report for N_A.'],
  [
    'Build a register of all visitors of N.',
    'Scrap the register. Please draft the contract with N_A instead.',
  ],
  ['Plan the summer party at N.', 'Change of plans: we prepare the audit of N_A.'],
  ['Schreib den Rundbrief über N.', 'Vergiss das, jetzt schreiben wir den Bericht über N_A.'],
  ['Prépare la lettre pour N.', 'Oublie ça, maintenant on rédige le rapport de N_A.'],
  ['Escribe la carta para N.', 'Olvida eso, ahora escribimos el informe de N_A.'],
  ['Scrivi la lettera per N.', 'Lascia perdere, ora scriviamo la relazione su N_A.'],
  ['Напиши письмо для N, пожалуйста.', 'Забудь об этом, теперь пишем отчёт о N_A.'],
];

/** Demands by language. */
export const DEMANDS: Readonly<Record<string, readonly string[]>> = {
  en: [
    'Never send N_A to anybody.',
    'Only Mr. N approves refunds over A.',
    'No deployments of N after A.',
    'We need every page of N to be signed.',
    'Please keep N_A out of the logs.',
  ],
  de: [
    'Sende N_A niemals an Dritte.',
    'Die Datei N_A darf nicht geändert werden.',
    'Höchstens A Versuche für N.',
  ],
  fr: ["N'envoie jamais N_A.", 'Il est interdit de publier N_A.', 'Au maximum A essais pour N.'],
  es: ['Nunca envíes N_A.', 'Está prohibido publicar N_A.', 'Como máximo A intentos para N.'],
  pt: ['Nunca envie N_A.', 'É proibido publicar N_A.', 'No máximo A tentativas para N.'],
  it: ['Non inviare mai N_A.', 'È vietato pubblicare N_A.', 'Al massimo A tentativi per N.'],
  ru: ['Никогда не отправляй N_A.', 'Нельзя публиковать N_A.', 'Не более A попыток для N.'],
  zh: ['绝不要发送 N_A。', '不得公布 N_A。', 'N 最多 A 次。'],
  ja: ['N_A を絶対に送らないでください。', 'N_A を公開してはいけません。', '必ず N に聞いてください。'],
  nl: ['Stuur N_A nooit door.', 'Je mag N_A niet publiceren.', 'Hoogstens A pogingen voor N.'],
  tr: ['N_A asla gönderme.', 'N_A yayınlamak yasak.', 'N için en fazla A deneme.'],
  ar: ['لا ترسل N_A أبدا.', 'يمنع نشر N_A.', 'يجب أن يوافق N أولا.'],
  ko: ['N_A 파일을 절대 보내지 마세요.', 'N_A 공개 금지입니다.', 'N 재시도는 최대 A번입니다.'],
  hi: ['N_A कभी मत भेजना।', 'N_A प्रकाशित न करें।', 'N के लिए अधिकतम A प्रयास।'],
  vi: ['Không bao giờ gửi N_A.', 'Cấm công bố N_A.', 'Tối đa A lần thử cho N.'],
  he: ['לעולם אל תשלח את N_A.', 'אסור לפרסם את N_A.', 'לכל היותר A ניסיונות.'],
  pl: ['Nigdy nie wysyłaj N_A.', 'Nie wolno publikować N_A.', 'Maksymalnie A prób dla N.'],
  sv: ['Skicka aldrig N_A.', 'Du får inte publicera N_A.', 'Högst A försök för N.'],
  uk: ['Ніколи не надсилай N_A.', 'Не можна публікувати N_A.', 'Не більше A спроб для N.'],
};
